#ifndef RUBATO_COMMON_HEALTH_HEALTH_H_
#define RUBATO_COMMON_HEALTH_HEALTH_H_

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace rubato {

// Whether a task is ready for work, for whoever probes it: gRPC's standard health service (HealthService) and the page
// /healthz. Starts as not serving. Thread-safe.
class Health {
 public:
  Health() = default;
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  // False before the task is ready and while it drains.
  void SetServing(bool serving);
  bool serving() const;
  // The same, as soon as it is not `known`, or after `timeout`.
  bool AwaitChange(bool known, absl::Duration timeout) const;

 private:
  mutable Mutex mu_;
  mutable CondVar changed_;
  bool serving_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_HEALTH_HEALTH_H_
