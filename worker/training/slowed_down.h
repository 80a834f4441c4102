#ifndef RUBATO_WORKER_TRAINING_SLOWED_DOWN_H_
#define RUBATO_WORKER_TRAINING_SLOWED_DOWN_H_

#include "absl/time/time.h"
#include "common/clock.h"

namespace rubato::worker {

// Makes the work in its scope take `factor` times its processor time; the rest is slept.
class SlowedDown {
 public:
  SlowedDown(Clock* clock, double factor) : clock_(clock), factor_(factor) {
    if (factor_ > 1) begin_ = ThreadCpuTime();
  }
  ~SlowedDown() {
    if (factor_ > 1) clock_->Sleep((ThreadCpuTime() - begin_) * (factor_ - 1));
  }
  SlowedDown(const SlowedDown&) = delete;
  SlowedDown& operator=(const SlowedDown&) = delete;

 private:
  Clock* const clock_;
  const double factor_;
  absl::Duration begin_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_SLOWED_DOWN_H_
