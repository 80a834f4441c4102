#include "common/health/standard_services.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>

#include "common/limits/port_limits.h"
#include "common/status.h"

namespace rubato {

void EnableReflection() { grpc::reflection::InitProtoReflectionServerBuilderPlugin(); }

absl::StatusOr<std::unique_ptr<HealthListener>> HealthListener::Create(const std::string& listen,
                                                                       const Health* health) {
  if (listen.empty()) return nullptr;
  std::unique_ptr<HealthListener> listener(new HealthListener(health));
  grpc::ServerBuilder builder;
  builder.RegisterService(&listener->service_);
  // Probes are few.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 1);
  absl::StatusOr<std::unique_ptr<GuardedServer>> server = GuardedServer::Start(
      {.listen = listen, .credentials = grpc::InsecureServerCredentials(), .limits = ProbeLimits()}, &builder);
  RUBATO_RETURN_IF_ERROR(Annotate(server.status(), "--health_listen"));
  listener->server_ = *std::move(server);
  return listener;
}

HealthListener::~HealthListener() {
  if (server_ == nullptr) return;
  service_.Drain();
  // Whoever watches is told first.
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
}

}  // namespace rubato
