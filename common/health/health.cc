#include "common/health/health.h"

namespace rubato {

void Health::SetServing(bool serving) {
  MutexLock lock(mu_);
  serving_ = serving;
  changed_.NotifyAll();
}

bool Health::serving() const {
  MutexLock lock(mu_);
  return serving_;
}

bool Health::AwaitChange(bool known, absl::Duration timeout) const {
  MutexLock lock(mu_);
  if (serving_ == known) changed_.WaitFor(mu_, timeout);
  return serving_;
}

}  // namespace rubato
