#include "client/sidecar/coordinator_calls.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/session/coordinator_channel.h"
#include "common/status.h"
#include "common/storage/cut_record.h"

namespace rubato::client {
namespace {

constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
// A request that the coordinator answers at once.
constexpr absl::Duration kAnswer = absl::Seconds(20);
// How long one request waits there for a value or a barrier, and for how much longer its answer may take.
constexpr absl::Duration kWait = absl::Seconds(10);
// A change of mode, or a checkpoint.
constexpr absl::Duration kChange = absl::Seconds(600);

}  // namespace

void Cancellation::Cancel() {
  MutexLock lock(mu_);
  cancelled_ = true;
  if (cancel_) cancel_();
}

bool Cancellation::cancelled() {
  MutexLock lock(mu_);
  return cancelled_;
}

void Cancellation::Watch(grpc::ClientContext* context) {
  Watch(context == nullptr ? std::function<void()>() : [context] { context->TryCancel(); });
}

void Cancellation::Watch(std::function<void()> cancel) {
  MutexLock lock(mu_);
  cancel_ = std::move(cancel);
  if (cancelled_ && cancel_) cancel_();
}

CoordinatorCalls::CoordinatorCalls(std::string address, const TaskSecurity* security, absl::Duration timeout,
                                   Clock* clock)
    : address_(std::move(address)),
      timeout_(timeout),
      clock_(clock),
      channel_(OpenCoordinatorChannel(address_, security)),
      stub_(v1::Coordinator::NewStub(channel_)) {}

absl::Status CoordinatorCalls::AwaitReachable(Cancellation* cancellation) {
  const absl::Time begin = clock_->Now();
  while (!cancellation->cancelled()) {
    const absl::Duration slice = std::min(absl::Milliseconds(500), timeout_ - (clock_->Now() - begin));
    if (slice <= absl::ZeroDuration()) {
      return absl::UnavailableError(
          absl::StrCat("no coordinator answers at ", address_, " within ", absl::FormatDuration(timeout_)));
    }
    if (channel_->WaitForConnected(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(slice))) {
      return absl::OkStatus();
    }
  }
  return absl::CancelledError("given up");
}

absl::Status CoordinatorCalls::Repeat(absl::Duration deadline,
                                      const std::function<grpc::Status(grpc::ClientContext*)>& call,
                                      Cancellation* cancellation) {
  const absl::Time begin = clock_->Now();
  for (;;) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(deadline));
    cancellation->Watch(&context);
    const absl::Status status = FromGrpcStatus(call(&context));
    cancellation->Watch(std::function<void()>());
    if (cancellation->cancelled()) return absl::CancelledError("given up");
    if (!absl::IsUnavailable(status)) return status;
    if (clock_->Now() - begin > timeout_) return Annotate(status, absl::StrCat("coordinator at ", address_));
    clock_->Sleep(kRetryPause);
  }
}

absl::StatusOr<v1::OfferModelReply> CoordinatorCalls::OfferModel(const v1::OfferModelRequest& request,
                                                                 Cancellation* cancellation) {
  v1::OfferModelReply reply;
  RUBATO_RETURN_IF_ERROR(Repeat(
      kAnswer, [&](grpc::ClientContext* context) { return stub_->OfferModel(context, request, &reply); },
      cancellation));
  return reply;
}

absl::Status CoordinatorCalls::PutValue(const v1::PutValueRequest& request, Cancellation* cancellation) {
  v1::PutValueReply reply;
  return Repeat(
      kAnswer, [&](grpc::ClientContext* context) { return stub_->PutValue(context, request, &reply); }, cancellation);
}

absl::StatusOr<std::string> CoordinatorCalls::GetValue(v1::GetValueRequest request, Cancellation* cancellation) {
  request.set_timeout_seconds(absl::ToDoubleSeconds(kWait));
  for (;;) {
    v1::GetValueReply reply;
    const absl::Status status = Repeat(
        kWait + kAnswer, [&](grpc::ClientContext* context) { return stub_->GetValue(context, request, &reply); },
        cancellation);
    if (status.ok()) return std::move(*reply.mutable_value());
    if (!absl::IsNotFound(status) && !absl::IsDeadlineExceeded(status)) return status;
  }
}

absl::Status CoordinatorCalls::AwaitBarrier(v1::BarrierRequest request, Cancellation* cancellation) {
  request.set_timeout_seconds(absl::ToDoubleSeconds(kWait));
  for (;;) {
    v1::BarrierReply reply;
    const absl::Status status = Repeat(
        kWait + kAnswer, [&](grpc::ClientContext* context) { return stub_->Barrier(context, request, &reply); },
        cancellation);
    if (!absl::IsDeadlineExceeded(status)) return status;
  }
}

absl::Status CoordinatorCalls::SwitchMode(const v1::SwitchModeRequest& request, Cancellation* cancellation) {
  v1::SwitchModeReply reply;
  return Repeat(
      kChange, [&](grpc::ClientContext* context) { return stub_->SwitchMode(context, request, &reply); }, cancellation);
}

absl::StatusOr<std::string> CoordinatorCalls::WriteCheckpoint(Cancellation* cancellation) {
  v1::WriteCheckpointNowReply reply;
  RUBATO_RETURN_IF_ERROR(Repeat(
      kChange, [&](grpc::ClientContext* context) { return stub_->WriteCheckpointNow(context, {}, &reply); },
      cancellation));
  // It becomes a part of a path.
  RUBATO_RETURN_IF_ERROR(Annotate(CheckCutName(reply.cut().name()), "the coordinator's answer"));
  return reply.cut().name();
}

}  // namespace rubato::client
