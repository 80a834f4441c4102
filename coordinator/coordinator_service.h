#ifndef RUBATO_COORDINATOR_COORDINATOR_SERVICE_H_
#define RUBATO_COORDINATOR_COORDINATOR_SERVICE_H_

#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/job_runner.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato::coordinator {

// gRPC's side of a JobRunner: turns calls into events and answers into replies. Thread-safe, without state.
class CoordinatorService final : public v1::Coordinator::CallbackService {
 public:
  // `runner` outlives the service.
  explicit CoordinatorService(JobRunner* runner) : runner_(runner) {}

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

 private:
  JobRunner* const runner_;
};

struct Listener {
  std::unique_ptr<grpc::Server> server;
  // The port that was picked.
  int port = 0;
};

// Serves on `address`, "host:port"; port 0 picks a free one. `service` outlives the server. Unavailable: the address
// cannot be had; the message names it.
absl::StatusOr<Listener> Listen(const std::string& address, CoordinatorService* service);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_COORDINATOR_SERVICE_H_
