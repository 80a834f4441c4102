#include "coordinator/coordinator_service.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/grpc_status.h"
#include "common/security/call_check.h"
#include "common/security/sender.h"
#include "common/tsan.h"
#include "coordinator/rules/registration.h"
#include "coordinator/session_reactor.h"

namespace rubato::coordinator {
namespace {

// The answer must be in flight before the caller's deadline.
constexpr absl::Duration kAnswerMargin = absl::Milliseconds(200);
constexpr absl::Duration kLongestWait = absl::Minutes(10);

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

// Whether the request is of whom the caller's certificate names.
absl::Status CheckCaller(const grpc::CallbackServerContext& context, const v1::TaskId& task) {
  return CheckSender(PeerIdentity(*context.auth_context()), task);
}

// A session with nobody.
class RefusedSession final : public grpc::ServerBidiReactor<v1::TaskMessage, v1::Directive> {
 public:
  RefusedSession() { Finish(NoJob()); }

 private:
  void OnDone() override { delete this; }
};

grpc::ServerUnaryReactor* Finished(grpc::CallbackServerContext* context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

// What finishes a call when its result is there: with the reply, if it is OK.
template <typename Reply>
auto FinishWith(grpc::ServerUnaryReactor* reactor, Reply* reply) {
  return [reactor, reply](absl::StatusOr<Reply> result) {
    if (result.ok()) *reply = *std::move(result);
    reactor->Finish(ToGrpcStatus(result.status()));
  };
}

// The same of a call whose reply says nothing.
auto FinishWith(grpc::ServerUnaryReactor* reactor) {
  return [reactor](const absl::Status& status) { reactor->Finish(ToGrpcStatus(status)); };
}

// The caller's deadline, or the request's if that is sooner.
absl::Duration TimeoutOf(const grpc::CallbackServerContext& context, double seconds) {
  return std::clamp(absl::Seconds(seconds), absl::ZeroDuration(), TimeoutOf(context));
}

}  // namespace

grpc::ServerBidiReactor<v1::TaskMessage, v1::Directive>* CoordinatorService::Session(
    grpc::CallbackServerContext* context) {
  TsanAcquire(this);
  JobRunner* const runner = runner_;
  if (runner == nullptr) return new RefusedSession();
  return SessionReactor::Start(runner, context);
}

grpc::ServerUnaryReactor* CoordinatorService::GetStatus(grpc::CallbackServerContext* context,
                                                        const v1::GetStatusRequest*, v1::JobStatus* reply) {
  TsanAcquire(this);
  JobRunner* const runner = runner_;
  if (runner == nullptr) {
    *reply = before_.status;
    return Finished(context, grpc::Status::OK);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runner->GetStatus([reactor, reply](v1::JobStatus status) {
    *reply = std::move(status);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::AskJob(grpc::CallbackServerContext* context, AskFunction ask) {
  TsanAcquire(this);
  JobRunner* const runner = runner_;
  if (runner == nullptr) return Finished(context, NoJob());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  ask(runner, reactor);
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::SwitchMode(grpc::CallbackServerContext* context,
                                                         const v1::SwitchModeRequest* request,
                                                         v1::SwitchModeReply* reply) {
  return AskJob(context, [&](JobRunner* runner, grpc::ServerUnaryReactor* reactor) {
    runner->SwitchMode(*request, OperatorOf(*context), TimeoutOf(*context), FinishWith(reactor, reply));
  });
}

grpc::ServerUnaryReactor* CoordinatorService::StopJob(grpc::CallbackServerContext* context,
                                                      const v1::StopJobRequest* request, v1::StopJobReply*) {
  TsanAcquire(this);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const std::string& why = request->reason();
  JobRunner* const runner = runner_;
  if (runner == nullptr) {
    before_.stop(absl::StrCat("stopped by the ", OperatorOf(*context), why.empty() ? "" : ": ", why));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  runner->Stop(why, OperatorOf(*context), [reactor] { reactor->Finish(grpc::Status::OK); });
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::TraceJob(grpc::CallbackServerContext* context,
                                                       const v1::TraceJobRequest* request, v1::TraceJobReply* reply) {
  return AskJob(context, [&](JobRunner* runner, grpc::ServerUnaryReactor* reactor) {
    runner->Trace(*request, OperatorOf(*context), FinishWith(reactor, reply));
  });
}

grpc::ServerUnaryReactor* CoordinatorService::WriteCheckpointNow(grpc::CallbackServerContext* context,
                                                                 const v1::WriteCheckpointNowRequest*,
                                                                 v1::WriteCheckpointNowReply* reply) {
  return AskJob(context, [&](JobRunner* runner, grpc::ServerUnaryReactor* reactor) {
    runner->WriteCheckpoint(OperatorOf(*context), TimeoutOf(*context), FinishWith(reactor, reply));
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
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  offers_->Offer(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::GetJobConfig(grpc::CallbackServerContext* context,
                                                           const v1::GetJobConfigRequest* request,
                                                           v1::GetJobConfigReply* reply) {
  TsanAcquire(this);
  if (offers_ == nullptr) {
    return Finished(context, ToGrpcStatus(absl::FailedPreconditionError("this coordinator gives no config")));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  offers_->GetConfig(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::PutValue(grpc::CallbackServerContext* context,
                                                       const v1::PutValueRequest* request, v1::PutValueReply*) {
  if (absl::Status caller = CheckCaller(*context, request->task()); !caller.ok()) {
    return Finished(context, ToGrpcStatus(caller));
  }
  return AskJob(context, [&](JobRunner* runner, grpc::ServerUnaryReactor* reactor) {
    runner->PutValue(*request, FinishWith(reactor));
  });
}

grpc::ServerUnaryReactor* CoordinatorService::GetValue(grpc::CallbackServerContext* context,
                                                       const v1::GetValueRequest* request, v1::GetValueReply* reply) {
  if (absl::Status caller = CheckCaller(*context, request->task()); !caller.ok()) {
    return Finished(context, ToGrpcStatus(caller));
  }
  return AskJob(context, [&](JobRunner* runner, grpc::ServerUnaryReactor* reactor) {
    runner->GetValue(*request, TimeoutOf(*context, request->timeout_seconds()), FinishWith(reactor, reply));
  });
}

grpc::ServerUnaryReactor* CoordinatorService::Barrier(grpc::CallbackServerContext* context,
                                                      const v1::BarrierRequest* request, v1::BarrierReply*) {
  if (absl::Status caller = CheckCaller(*context, request->task()); !caller.ok()) {
    return Finished(context, ToGrpcStatus(caller));
  }
  return AskJob(context, [&](JobRunner* runner, grpc::ServerUnaryReactor* reactor) {
    runner->Barrier(*request, TimeoutOf(*context, request->timeout_seconds()), FinishWith(reactor));
  });
}

absl::StatusOr<Listener> Listen(const std::string& address, const TaskSecurity* security, CoordinatorService* service) {
  Listener listener;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, ServerCredentialsOf(security), &listener.port);
  // Two coordinators on one port would each see a part of the tasks.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Tasks ping an idle stream every five seconds.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  builder.RegisterService(service);
  TsanRelease(service);  // To gRPC's threads.
  listener.server = builder.BuildAndStart();
  if (listener.server == nullptr || listener.port == 0) {
    return absl::UnavailableError(absl::StrCat(
        "--listen ", address, ": cannot listen there; the port is taken or the host is not this machine's"));
  }
  return listener;
}

}  // namespace rubato::coordinator
