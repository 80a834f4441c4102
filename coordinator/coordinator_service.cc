#include "coordinator/coordinator_service.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/grpc_status.h"
#include "common/limits/peer_name.h"
#include "common/limits/port_limits.h"
#include "common/security/call_check.h"
#include "common/security/sender.h"
#include "common/status.h"
#include "common/tsan.h"
#include "coordinator/rules/registration.h"
#include "coordinator/session_reactor.h"

namespace rubato::coordinator {
namespace {

// The answer must be in flight before the caller's deadline.
constexpr absl::Duration kAnswerMargin = absl::Milliseconds(200);
constexpr absl::Duration kLongestWait = absl::Minutes(10);
// Of an operator's words, which all tasks are told and the run record has.
constexpr size_t kReasonBytes = 1024;

// How long the caller can be kept waiting.
absl::Duration TimeoutOf(const grpc::CallbackServerContext& context) {
  const absl::Duration left = absl::FromChrono(context.deadline() - std::chrono::system_clock::now());
  return std::clamp(left - kAnswerMargin, absl::ZeroDuration(), kLongestWait);
}

// As the run record names who has asked for something.
std::string OperatorOf(const grpc::CallbackServerContext& context) {
  return absl::StrCat("operator at ", PeerHost(context.peer()));
}

grpc::Status NoJob() {
  return ToGrpcStatus(absl::UnavailableError("the job has not begun: it waits for a client to offer its model"));
}

// A session with nobody.
class RefusedSession final : public grpc::ServerBidiReactor<v1::TaskMessage, v1::Directive> {
 public:
  explicit RefusedSession(const grpc::Status& status) { Finish(status); }

 private:
  void OnDone() override { delete this; }
};

grpc::ServerUnaryReactor* Finished(grpc::CallbackServerContext* context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

// What finishes a call when its result is there: with the reply, if it is OK.
template <typename Call, typename Reply>
auto FinishWith(Call call, Reply* reply) {
  return [call = std::move(call), reply](absl::StatusOr<Reply> result) {
    if (result.ok()) *reply = *std::move(result);
    call.reactor->Finish(ToGrpcStatus(result.status()));
  };
}

// The same of a call whose reply says nothing.
template <typename Call>
auto FinishWith(Call call) {
  return [call = std::move(call)](const absl::Status& status) { call.reactor->Finish(ToGrpcStatus(status)); };
}

// The caller's deadline, or the request's if that is sooner.
absl::Duration TimeoutOf(const grpc::CallbackServerContext& context, double seconds) {
  return std::clamp(absl::Seconds(seconds), absl::ZeroDuration(), TimeoutOf(context));
}

}  // namespace

absl::StatusOr<PeerCounts::Place> CoordinatorService::TakePlace(grpc::CallbackServerContext* context,
                                                                PeerCounts* counts) {
  const std::optional<Identity> identity = PeerIdentity(*context->auth_context());
  absl::StatusOr<PeerCounts::Place> place = counts->Take(identity, context->peer());
  if (!place.ok() && refusals_ != nullptr) {
    refusals_->Note(PeerName(identity, context->peer()), counts == &sessions_ ? "sessions" : "calls",
                    place.status().message());
  }
  return place;
}

absl::Status CoordinatorService::CheckCaller(const grpc::CallbackServerContext& context, const v1::TaskId& task) {
  const std::optional<Identity> identity = PeerIdentity(*context.auth_context());
  absl::Status sender = CheckSender(identity, task);
  if (!sender.ok() && refusals_ != nullptr) {
    refusals_->Note(PeerName(identity, context.peer()), "sender", sender.message());
  }
  return sender;
}

grpc::ServerBidiReactor<v1::TaskMessage, v1::Directive>* CoordinatorService::Session(
    grpc::CallbackServerContext* context) {
  TsanAcquire(this);
  JobRunner* const runner = runner_;
  if (runner == nullptr) return new RefusedSession(NoJob());
  absl::StatusOr<PeerCounts::Place> place = TakePlace(context, &sessions_);
  if (!place.ok()) return new RefusedSession(ToGrpcStatus(place.status()));
  return SessionReactor::Start(runner, context, *std::move(place), refusals_);
}

grpc::ServerUnaryReactor* CoordinatorService::GetStatus(grpc::CallbackServerContext* context,
                                                        const v1::GetStatusRequest*, v1::JobStatus* reply) {
  if (runner_ == nullptr) {
    TsanAcquire(this);
    *reply = before_.status;
    return Finished(context, grpc::Status::OK);
  }
  return AskJob(context, [reply](JobRunner* runner, Call call) {
    runner->GetStatus([call = std::move(call), reply](v1::JobStatus status) {
      *reply = std::move(status);
      call.reactor->Finish(grpc::Status::OK);
    });
  });
}

grpc::ServerUnaryReactor* CoordinatorService::AskJob(grpc::CallbackServerContext* context, AskFunction ask) {
  TsanAcquire(this);
  JobRunner* const runner = runner_;
  if (runner == nullptr) return Finished(context, NoJob());
  absl::StatusOr<PeerCounts::Place> place = TakePlace(context, &calls_);
  if (!place.ok()) return Finished(context, ToGrpcStatus(place.status()));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  ask(runner, {reactor, *std::move(place)});
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::SwitchMode(grpc::CallbackServerContext* context,
                                                         const v1::SwitchModeRequest* request,
                                                         v1::SwitchModeReply* reply) {
  return AskJob(context, [&](JobRunner* runner, Call call) {
    runner->SwitchMode(*request, OperatorOf(*context), TimeoutOf(*context), FinishWith(std::move(call), reply));
  });
}

grpc::ServerUnaryReactor* CoordinatorService::StopJob(grpc::CallbackServerContext* context,
                                                      const v1::StopJobRequest* request, v1::StopJobReply*) {
  const std::string& why = request->reason();
  if (why.size() > kReasonBytes) {
    return Finished(context, ToGrpcStatus(absl::InvalidArgumentError(
                                 absl::StrCat("reason: ", why.size(), " bytes; allowed: up to ", kReasonBytes))));
  }
  if (runner_ == nullptr) {
    TsanAcquire(this);
    before_.stop(absl::StrCat("stopped by the ", OperatorOf(*context), why.empty() ? "" : ": ", why));
    return Finished(context, grpc::Status::OK);
  }
  return AskJob(context, [&](JobRunner* runner, Call call) {
    runner->Stop(why, OperatorOf(*context), [call = std::move(call)] { call.reactor->Finish(grpc::Status::OK); });
  });
}

grpc::ServerUnaryReactor* CoordinatorService::TraceJob(grpc::CallbackServerContext* context,
                                                       const v1::TraceJobRequest* request, v1::TraceJobReply* reply) {
  return AskJob(context, [&](JobRunner* runner, Call call) {
    runner->Trace(*request, OperatorOf(*context), FinishWith(std::move(call), reply));
  });
}

grpc::ServerUnaryReactor* CoordinatorService::WriteCheckpointNow(grpc::CallbackServerContext* context,
                                                                 const v1::WriteCheckpointNowRequest*,
                                                                 v1::WriteCheckpointNowReply* reply) {
  return AskJob(context, [&](JobRunner* runner, Call call) {
    runner->WriteCheckpoint(OperatorOf(*context), TimeoutOf(*context), FinishWith(std::move(call), reply));
  });
}

grpc::ServerUnaryReactor* CoordinatorService::OfferModel(grpc::CallbackServerContext* context,
                                                         const v1::OfferModelRequest* request,
                                                         v1::OfferModelReply* reply) {
  TsanAcquire(this);
  if (offers_ == nullptr) {
    return Finished(context, ToGrpcStatus(absl::FailedPreconditionError("this coordinator takes no model")));
  }
  if (absl::Status caller = CheckCaller(*context, request->task()); !caller.ok()) {
    return Finished(context, ToGrpcStatus(caller));
  }
  absl::StatusOr<PeerCounts::Place> place = TakePlace(context, &calls_);
  if (!place.ok()) return Finished(context, ToGrpcStatus(place.status()));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  offers_->Offer(*request, FinishWith(Call{reactor, *std::move(place)}, reply));
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::GetJobConfig(grpc::CallbackServerContext* context,
                                                           const v1::GetJobConfigRequest* request,
                                                           v1::GetJobConfigReply* reply) {
  TsanAcquire(this);
  if (offers_ == nullptr) {
    return Finished(context, ToGrpcStatus(absl::FailedPreconditionError("this coordinator gives no config")));
  }
  absl::StatusOr<PeerCounts::Place> place = TakePlace(context, &calls_);
  if (!place.ok()) return Finished(context, ToGrpcStatus(place.status()));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  offers_->GetConfig(*request, FinishWith(Call{reactor, *std::move(place)}, reply));
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::PutValue(grpc::CallbackServerContext* context,
                                                       const v1::PutValueRequest* request, v1::PutValueReply*) {
  if (absl::Status caller = CheckCaller(*context, request->task()); !caller.ok()) {
    return Finished(context, ToGrpcStatus(caller));
  }
  return AskJob(context,
                [&](JobRunner* runner, Call call) { runner->PutValue(*request, FinishWith(std::move(call))); });
}

grpc::ServerUnaryReactor* CoordinatorService::GetValue(grpc::CallbackServerContext* context,
                                                       const v1::GetValueRequest* request, v1::GetValueReply* reply) {
  if (absl::Status caller = CheckCaller(*context, request->task()); !caller.ok()) {
    return Finished(context, ToGrpcStatus(caller));
  }
  return AskJob(context, [&](JobRunner* runner, Call call) {
    runner->GetValue(*request, TimeoutOf(*context, request->timeout_seconds()), FinishWith(std::move(call), reply));
  });
}

grpc::ServerUnaryReactor* CoordinatorService::Barrier(grpc::CallbackServerContext* context,
                                                      const v1::BarrierRequest* request, v1::BarrierReply*) {
  if (absl::Status caller = CheckCaller(*context, request->task()); !caller.ok()) {
    return Finished(context, ToGrpcStatus(caller));
  }
  return AskJob(context, [&](JobRunner* runner, Call call) {
    runner->Barrier(*request, TimeoutOf(*context, request->timeout_seconds()), FinishWith(std::move(call)));
  });
}

absl::StatusOr<Listener> Listen(const std::string& address, const TaskSecurity* security, CoordinatorService* service,
                                HealthService* health) {
  grpc::ServerBuilder builder;
  // Tasks ping an idle stream every five seconds.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000);
  builder.RegisterService(service);
  if (health != nullptr) builder.RegisterService(health);
  TsanRelease(service);  // To gRPC's threads.
  absl::StatusOr<std::unique_ptr<GuardedServer>> server =
      GuardedServer::Start({.listen = address,
                            .credentials = ServerCredentialsOf(security),
                            .limits = CoordinatorLimits(),
                            .refusals = service->refusals()},
                           &builder);
  RUBATO_RETURN_IF_ERROR(Annotate(server.status(), "--listen"));
  Listener listener;
  listener.server = *std::move(server);
  listener.port = listener.server->port();
  return listener;
}

}  // namespace rubato::coordinator
