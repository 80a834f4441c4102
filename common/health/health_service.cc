#include "common/health/health_service.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace rubato {
namespace {

// How soon it is noticed that a watcher has gone, or that the port drains.
constexpr absl::Duration kPeriod = absl::Milliseconds(100);

grpc::health::v1::HealthCheckResponse::ServingStatus StatusOf(bool serving) {
  return serving ? grpc::health::v1::HealthCheckResponse::SERVING : grpc::health::v1::HealthCheckResponse::NOT_SERVING;
}

}  // namespace

HealthService::HealthService(const Health* health, std::string service)
    : health_(health), service_(std::move(service)) {}

grpc::Status HealthService::Check(grpc::ServerContext*, const Request* request, Response* response) {
  if (!Knows(request->service())) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND,
                        absl::StrCat("service: \"", request->service(), "\" is not on this port"));
  }
  response->set_status(StatusOf(health_->serving() && !draining_));
  return grpc::Status::OK;
}

grpc::Status HealthService::Watch(grpc::ServerContext* context, const Request* request,
                                  grpc::ServerWriter<Response>* writer) {
  const absl::Cleanup leave = [this] { --watchers_; };
  if (++watchers_ > kMaxWatchers) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                        absl::StrCat(kMaxWatchers, " watch this port already; no more at the same time"));
  }
  const bool known = Knows(request->service());
  bool serving = health_->serving();
  Response told;
  while (!context->IsCancelled()) {
    const bool draining = draining_;
    const auto status = known ? StatusOf(serving && !draining) : Response::SERVICE_UNKNOWN;
    if (status != told.status()) {
      told.set_status(status);
      if (!writer->Write(told)) break;
    }
    if (draining) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is shutting down");
    serving = health_->AwaitChange(serving, kPeriod);
  }
  return grpc::Status::CANCELLED;
}

}  // namespace rubato
