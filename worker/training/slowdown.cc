#include "worker/training/slowdown.h"

#include "common/straggler/sleep_unless.h"

namespace rubato::worker {

Slowdown::Computing::Computing(Slowdown* slowdown)
    : slowdown_(slowdown != nullptr && slowdown->delay_.factor > 1 ? slowdown : nullptr) {
  if (slowdown_ != nullptr) begin_ = ThreadCpuTime();
}

Slowdown::Computing::~Computing() {
  if (slowdown_ != nullptr) slowdown_->Sleep((ThreadCpuTime() - begin_) * (slowdown_->delay_.factor - 1));
}

Slowdown::Slowdown(const StragglerModel& model, const Straggler::Place& place, Clock* clock)
    : straggler_(model, place), clock_(clock) {}

void Slowdown::Sleep(absl::Duration duration) {
  SleepUnless([this] { return ended_.load(); }, duration, clock_);
}

}  // namespace rubato::worker
