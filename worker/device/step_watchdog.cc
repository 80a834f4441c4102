#include "worker/device/step_watchdog.h"

#include <utility>

namespace rubato::worker {

StepWatchdog::Watch::Watch(StepWatchdog* watchdog, absl::string_view what, absl::string_view subject, On on)
    : watchdog_(watchdog) {
  if (watchdog_ == nullptr) return;
  MutexLock lock(watchdog_->mu_);
  watchdog_->deadline_.Enter(on, what, subject, watchdog_->options_.clock->Now());
}

StepWatchdog::Watch::~Watch() {
  if (watchdog_ == nullptr) return;
  MutexLock lock(watchdog_->mu_);
  watchdog_->deadline_.Leave(watchdog_->options_.clock->Now());
}

StepWatchdog::StepWatchdog(Options options) : options_(std::move(options)), deadline_(options_.limit) {
  thread_ = std::thread([this] { Run(); });
}

StepWatchdog::~StepWatchdog() {
  {
    MutexLock lock(mu_);
    stop_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

void StepWatchdog::Begin(std::string work) {
  MutexLock lock(mu_);
  deadline_.Begin(std::move(work));
}

void StepWatchdog::Run() {
  if (const std::optional<std::string> what = AwaitExpiry()) options_.on_expired(*what);
}

std::optional<std::string> StepWatchdog::AwaitExpiry() {
  MutexLock lock(mu_);
  while (!stop_) {
    if (std::optional<std::string> what = deadline_.Expired(options_.clock->Now())) return what;
    wake_.WaitFor(mu_, options_.poll);
  }
  return std::nullopt;
}

}  // namespace rubato::worker
