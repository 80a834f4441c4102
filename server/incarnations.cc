#include "server/incarnations.h"

#include <utility>

namespace rubato::server {

absl::Status Incarnations::Run() {
  for (;;) {
    std::unique_ptr<Incarnation> incarnation = make_();
    if (Begin(incarnation.get())) {
      absl::Status status = incarnation->Run();
      MutexLock lock(mu_);
      current_ = nullptr;
      if (!incarnation->restarts()) return status;
      if (!cancelled_) continue;
    }
    MutexLock lock(mu_);
    return why_;
  }
}

bool Incarnations::Begin(Incarnation* next) {
  MutexLock lock(mu_);
  if (!cancelled_) current_ = next;
  return !cancelled_;
}

void Incarnations::Cancel(absl::Status why) {
  MutexLock lock(mu_);
  if (!cancelled_) why_ = why;
  cancelled_ = true;
  if (current_ != nullptr) current_->Cancel(std::move(why));
}

}  // namespace rubato::server
