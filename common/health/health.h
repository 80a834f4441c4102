#ifndef RUBATO_COMMON_HEALTH_HEALTH_H_
#define RUBATO_COMMON_HEALTH_HEALTH_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"

namespace grpc {
class Server;
}

namespace rubato {

// Whether a task is ready for work, for whoever probes it: gRPC's standard health service (grpc.health.v1.Health) and
// the page /healthz. Starts as not serving. Thread-safe.
//
//   Health health;                 // in main, after EnableHealth()
//   health.Attach(server, "rubato.v1.Coordinator");
//   health.SetServing(true);
//   health.Detach();               // before the server is destroyed
class Health {
 public:
  Health() = default;
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  // SERVING, or NOT_SERVING before the task is ready and while it drains.
  void SetServing(bool serving);
  bool serving() const;

  // From now on tells the server's health service, for the server as a whole and for `service`; with an empty one only
  // as a whole. A server without a health service is left alone. One server at a time.
  void Attach(grpc::Server* server, const std::string& service);
  // Says NOT_SERVING there, and no more.
  void Detach();

 private:
  void Tell(bool serving) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  bool serving_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Server* server_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::string service_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato

#endif  // RUBATO_COMMON_HEALTH_HEALTH_H_
