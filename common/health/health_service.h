#ifndef RUBATO_COMMON_HEALTH_HEALTH_SERVICE_H_
#define RUBATO_COMMON_HEALTH_HEALTH_SERVICE_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/sync_stream.h>

#include <atomic>
#include <string>

#include "common/health/health.h"
#include "proto/health.grpc.pb.h"

namespace rubato {

// gRPC's standard health service on one port. gRPC has one of its own, whose threads wait for the sockets of the whole
// process and take part in each message of every connection; this one's wait for calls alone. Thread-safe.
//
//   HealthService service(&health, "rubato.v1.Coordinator");
//   builder.RegisterService(&service);
//   ...
//   service.Drain();  // before the server is shut down
class HealthService final : public grpc::health::v1::Health::Service {
 public:
  // Who may watch at a time, each of whom has a thread. Another one is told RESOURCE_EXHAUSTED.
  static constexpr int kMaxWatchers = 16;

  // Answers for the port as a whole and for `service`; with an empty one only as a whole. `health` outlives it.
  HealthService(const Health* health, std::string service);

  // From now on the port does not serve, whatever becomes of the task. Whoever watches is told that, and no more.
  void Drain() { draining_ = true; }

 private:
  using Request = grpc::health::v1::HealthCheckRequest;
  using Response = grpc::health::v1::HealthCheckResponse;

  grpc::Status Check(grpc::ServerContext* context, const Request* request, Response* response) override;
  grpc::Status Watch(grpc::ServerContext* context, const Request* request,
                     grpc::ServerWriter<Response>* writer) override;
  bool Knows(const std::string& service) const { return service.empty() || service == service_; }

  const Health* const health_;
  const std::string service_;
  std::atomic<bool> draining_ = false;
  std::atomic<int> watchers_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_HEALTH_HEALTH_SERVICE_H_
