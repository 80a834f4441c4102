#ifndef RUBATO_COMMON_HEALTH_STANDARD_SERVICES_H_
#define RUBATO_COMMON_HEALTH_STANDARD_SERVICES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/health/health.h"
#include "common/limits/guarded_server.h"

namespace rubato {

// Lets every gRPC server that this process builds from now on offer gRPC's health service, or server reflection, on its
// port, which are gRPC's own settings of the whole process.
void EnableHealth();
void EnableReflection();

// A gRPC server with these services alone, for tasks that serve nothing else: anybody may ask whether they are healthy.
// Thread-safe.
class HealthListener {
 public:
  // Listens on "host:port"; port 0 takes a free one. Null if `listen` is empty. `health` outlives the listener.
  // InvalidArgument: `listen` is not "host:port". Unavailable: the port is taken, or the host is not an address of this
  // machine; the message names both.
  static absl::StatusOr<std::unique_ptr<HealthListener>> Create(const std::string& listen, Health* health);
  ~HealthListener();
  HealthListener(const HealthListener&) = delete;
  HealthListener& operator=(const HealthListener&) = delete;

  int port() const { return server_->port(); }

 private:
  explicit HealthListener(Health* health) : health_(health) {}

  Health* const health_;
  std::unique_ptr<GuardedServer> server_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_HEALTH_STANDARD_SERVICES_H_
