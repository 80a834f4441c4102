#include "common/health/health.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>

namespace rubato {

void Health::SetServing(bool serving) {
  MutexLock lock(mu_);
  serving_ = serving;
  Tell(serving);
}

bool Health::serving() const {
  MutexLock lock(mu_);
  return serving_;
}

void Health::Attach(grpc::Server* server, const std::string& service) {
  MutexLock lock(mu_);
  server_ = server;
  service_ = service;
  Tell(serving_);
}

void Health::Detach() {
  MutexLock lock(mu_);
  Tell(false);
  server_ = nullptr;
}

void Health::Tell(bool serving) {
  if (server_ == nullptr || server_->GetHealthCheckService() == nullptr) return;
  server_->GetHealthCheckService()->SetServingStatus(serving);
  if (!service_.empty()) server_->GetHealthCheckService()->SetServingStatus(service_, serving);
}

}  // namespace rubato
