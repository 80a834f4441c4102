#ifndef RUBATO_COORDINATOR_COORDINATOR_SERVICE_H_
#define RUBATO_COORDINATOR_COORDINATOR_SERVICE_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/health/health_service.h"
#include "common/limits/guarded_server.h"
#include "common/limits/peer_counts.h"
#include "common/limits/refusal_log.h"
#include "common/security/task_security.h"
#include "coordinator/job_runner.h"
#include "coordinator/model_offers.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato::coordinator {

// gRPC's side of a JobRunner and of ModelOffers: turns calls into events and answers into replies. Thread-safe, without
// state.
class CoordinatorService final : public v1::Coordinator::CallbackService {
 public:
  // Of a job that is not there yet.
  struct Before {
    // What operators are shown.
    v1::JobStatus status;
    // An operator asks for its end. Any thread.
    std::function<void(const std::string& reason)> stop;
  };

  // `runner` outlives the service. Models are offered to nobody.
  explicit CoordinatorService(JobRunner* runner) : runner_(runner) {}
  // Until SetRunner there is no job, and most calls are Unavailable. `offers` outlives the service.
  CoordinatorService(ModelOffers* offers, Before before) : offers_(offers), before_(std::move(before)) {}

  // Outlives the service's server.
  void SetRunner(JobRunner* runner) { runner_ = runner; }
  // Says who is refused; before Listen, and outlives the service's server.
  void SetRefusals(RefusalLog* refusals) { refusals_ = refusals; }
  RefusalLog* refusals() const { return refusals_; }

  grpc::ServerBidiReactor<v1::TaskMessage, v1::Directive>* Session(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const v1::GetStatusRequest* request,
                                      v1::JobStatus* reply) override;
  grpc::ServerUnaryReactor* SwitchMode(grpc::CallbackServerContext* context, const v1::SwitchModeRequest* request,
                                       v1::SwitchModeReply* reply) override;
  grpc::ServerUnaryReactor* StopJob(grpc::CallbackServerContext* context, const v1::StopJobRequest* request,
                                    v1::StopJobReply* reply) override;
  grpc::ServerUnaryReactor* TraceJob(grpc::CallbackServerContext* context, const v1::TraceJobRequest* request,
                                     v1::TraceJobReply* reply) override;
  grpc::ServerUnaryReactor* WriteCheckpointNow(grpc::CallbackServerContext* context,
                                               const v1::WriteCheckpointNowRequest* request,
                                               v1::WriteCheckpointNowReply* reply) override;

  grpc::ServerUnaryReactor* OfferModel(grpc::CallbackServerContext* context, const v1::OfferModelRequest* request,
                                       v1::OfferModelReply* reply) override;
  grpc::ServerUnaryReactor* GetJobConfig(grpc::CallbackServerContext* context, const v1::GetJobConfigRequest* request,
                                         v1::GetJobConfigReply* reply) override;
  grpc::ServerUnaryReactor* PutValue(grpc::CallbackServerContext* context, const v1::PutValueRequest* request,
                                     v1::PutValueReply* reply) override;
  grpc::ServerUnaryReactor* GetValue(grpc::CallbackServerContext* context, const v1::GetValueRequest* request,
                                     v1::GetValueReply* reply) override;
  grpc::ServerUnaryReactor* Barrier(grpc::CallbackServerContext* context, const v1::BarrierRequest* request,
                                    v1::BarrierReply* reply) override;

 private:
  // A call that is being answered.
  struct Call {
    grpc::ServerUnaryReactor* reactor = nullptr;
    // Held until it is answered.
    PeerCounts::Place place = nullptr;
  };
  using AskFunction = absl::FunctionRef<void(JobRunner* runner, Call call)>;
  // Errors of PeerCounts, which are noted.
  absl::StatusOr<PeerCounts::Place> TakePlace(grpc::CallbackServerContext* context, PeerCounts* counts);
  // Whether the request is of whom the caller's certificate names. If it is not, that is noted.
  absl::Status CheckCaller(const grpc::CallbackServerContext& context, const v1::TaskId& task);
  // Has `ask` ask the job for what finishes the call, now or later. Unavailable as long as there is none.
  grpc::ServerUnaryReactor* AskJob(grpc::CallbackServerContext* context, AskFunction ask);

  // A task has one session, and for a while those that broke off without a word.
  PeerCounts sessions_{{.what = "sessions", .per_task = 8, .per_host = 4096}};
  // Those of a client's threads, which may each wait for something.
  PeerCounts calls_{{.what = "calls", .per_task = 256, .per_host = 4096}};
  std::atomic<JobRunner*> runner_ = nullptr;
  RefusalLog* refusals_ = nullptr;
  ModelOffers* const offers_ = nullptr;
  const Before before_;
};

struct Listener {
  std::unique_ptr<GuardedServer> server;
  // The port that was picked.
  int port = 0;
};

// Serves on `address`, "host:port"; port 0 picks a free one. Calls are answered that `security` allows; null: all are.
// `service` and `health`, which may be null, outlive the server. Unavailable: the address cannot be had; the message
// names it.
absl::StatusOr<Listener> Listen(const std::string& address, const TaskSecurity* security, CoordinatorService* service,
                                HealthService* health = nullptr);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_COORDINATOR_SERVICE_H_
