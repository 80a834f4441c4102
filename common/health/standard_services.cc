#include "common/health/standard_services.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rubato {

void EnableHealth() { grpc::EnableDefaultHealthCheckService(true); }

void EnableReflection() { grpc::reflection::InitProtoReflectionServerBuilderPlugin(); }

absl::StatusOr<std::unique_ptr<HealthListener>> HealthListener::Create(const std::string& listen, Health* health) {
  if (listen.empty()) return nullptr;
  const size_t colon = listen.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(listen.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--health_listen: \"", listen, "\" is not \"host:port\" with a port from 0 to 65535"));
  }
  std::unique_ptr<HealthListener> listener(new HealthListener(health));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &listener->port_);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Probes are few.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 1);
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr || listener->port_ == 0) {
    return absl::UnavailableError(absl::StrCat("--health_listen: cannot listen on ", listen,
                                               ": the port is taken by another process, or the host is not an address "
                                               "of this machine; port 0 takes a free one"));
  }
  health->Attach(listener->server_.get(), "");
  return listener;
}

HealthListener::~HealthListener() {
  if (server_ == nullptr) return;
  health_->Detach();
  // Whoever watches is told first.
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
}

}  // namespace rubato
