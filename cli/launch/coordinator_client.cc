#include "cli/launch/coordinator_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"

namespace rubato {
namespace {

// What a call waits for a connection, of its own deadline.
constexpr absl::Duration kConnecting = absl::Milliseconds(500);

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address, const TaskSecurity* security) {
  grpc::ChannelArguments arguments;
  // The coordinator may have just started: try again soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // How long one attempt may take: a machine that is busy answers late.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return OpenChannel(address, Party::kCoordinator, 0, security, arguments);
}

std::chrono::system_clock::time_point In(absl::Duration duration) {
  return std::chrono::system_clock::now() + absl::ToChronoMilliseconds(duration);
}

void SetDeadline(absl::Duration deadline, grpc::ClientContext* context) { context->set_deadline(In(deadline)); }

}  // namespace

CoordinatorClient::CoordinatorClient(std::string address, std::shared_ptr<const TaskSecurity> security)
    : address_(std::move(address)),
      security_(std::move(security)),
      channel_(NewChannel(address_, security_.get())),
      stub_(v1::Coordinator::NewStub(channel_)) {}

absl::StatusOr<v1::JobStatus> CoordinatorClient::GetStatus(absl::Duration deadline) {
  // After a failed attempt to connect calls fail at once, and between calls nobody reads what a TLS handshake waits
  // for.
  if (channel_->GetState(/*try_to_connect=*/true) != GRPC_CHANNEL_READY) {
    channel_->WaitForConnected(In(std::min(deadline, kConnecting)));
  }
  grpc::ClientContext context;
  SetDeadline(deadline, &context);
  v1::JobStatus reply;
  absl::Status status = FromGrpcStatus(stub_->GetStatus(&context, v1::GetStatusRequest(), &reply));
  if (!status.ok()) return Annotate(status, absl::StrCat("coordinator at ", address_));
  return reply;
}

absl::StatusOr<v1::SwitchModeReply> CoordinatorClient::SwitchMode(const v1::SwitchModeRequest& request,
                                                                  absl::Duration deadline) {
  grpc::ClientContext context;
  SetDeadline(deadline, &context);
  v1::SwitchModeReply reply;
  absl::Status status = FromGrpcStatus(stub_->SwitchMode(&context, request, &reply));
  if (!status.ok()) return Annotate(status, absl::StrCat("coordinator at ", address_));
  return reply;
}

absl::StatusOr<v1::TraceJobReply> CoordinatorClient::TraceJob(double seconds, absl::Duration deadline) {
  grpc::ClientContext context;
  SetDeadline(deadline, &context);
  v1::TraceJobRequest request;
  request.set_seconds(seconds);
  v1::TraceJobReply reply;
  absl::Status status = FromGrpcStatus(stub_->TraceJob(&context, request, &reply));
  if (!status.ok()) return Annotate(status, absl::StrCat("coordinator at ", address_));
  return reply;
}

absl::StatusOr<v1::WriteCheckpointNowReply> CoordinatorClient::WriteCheckpointNow(absl::Duration deadline) {
  grpc::ClientContext context;
  SetDeadline(deadline, &context);
  v1::WriteCheckpointNowReply reply;
  absl::Status status = FromGrpcStatus(stub_->WriteCheckpointNow(&context, v1::WriteCheckpointNowRequest(), &reply));
  if (!status.ok()) return Annotate(status, absl::StrCat("coordinator at ", address_));
  return reply;
}

absl::Status CoordinatorClient::StopJob(const std::string& reason, absl::Duration deadline) {
  grpc::ClientContext context;
  SetDeadline(deadline, &context);
  v1::StopJobRequest request;
  request.set_reason(reason);
  v1::StopJobReply reply;
  return Annotate(FromGrpcStatus(stub_->StopJob(&context, request, &reply)), absl::StrCat("coordinator at ", address_));
}

}  // namespace rubato
