#ifndef RUBATO_COMMON_HEALTH_STANDARD_SERVICES_H_
#define RUBATO_COMMON_HEALTH_STANDARD_SERVICES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/health/health.h"
#include "common/health/health_service.h"
#include "common/limits/guarded_server.h"

namespace rubato {

// Lets every gRPC server that this process builds from now on offer server reflection on its port, which is gRPC's own
// setting of the whole process.
void EnableReflection();

// A gRPC server with this and the health service alone, for tasks that serve nothing else: anybody may ask whether they
// are healthy. Thread-safe.
class HealthListener {
 public:
  // Listens on "host:port"; port 0 takes a free one. Null if `listen` is empty. `health` outlives the listener.
  // InvalidArgument: `listen` is not "host:port". Unavailable: the port is taken, or the host is not an address of this
  // machine; the message names both.
  static absl::StatusOr<std::unique_ptr<HealthListener>> Create(const std::string& listen, const Health* health);
  ~HealthListener();
  HealthListener(const HealthListener&) = delete;
  HealthListener& operator=(const HealthListener&) = delete;

  int port() const { return server_->port(); }

 private:
  explicit HealthListener(const Health* health) : service_(health, "") {}

  HealthService service_;
  std::unique_ptr<GuardedServer> server_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_HEALTH_STANDARD_SERVICES_H_
