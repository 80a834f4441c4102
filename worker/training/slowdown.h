#ifndef RUBATO_WORKER_TRAINING_SLOWDOWN_H_
#define RUBATO_WORKER_TRAINING_SLOWDOWN_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/straggler/straggler.h"

namespace rubato::worker {

// Slows a worker's steps down as its model says: a step's computing takes `factor` times its processor time, and once a
// step what is added is slept. A factor under 1 shortens what is added alone. End from any thread, the rest on the
// trainer's.
//
//   slowdown.BeginStep(7);
//   { Slowdown::Computing computing(&slowdown); ... }
//   slowdown.Pause();
class Slowdown {
 public:
  // What is computed in its scope takes `factor` times as long. `slowdown` may be null: it takes as long as it does.
  class Computing {
   public:
    explicit Computing(Slowdown* slowdown);
    ~Computing();
    Computing(const Computing&) = delete;
    Computing& operator=(const Computing&) = delete;

   private:
    Slowdown* const slowdown_;  // Null where it need not be slower.
    absl::Duration begin_;
  };

  // The clock outlives it.
  Slowdown(const StragglerModel& model, const Straggler::Place& place, Clock* clock);
  Slowdown(const Slowdown&) = delete;
  Slowdown& operator=(const Slowdown&) = delete;

  void BeginStep(int64_t step) { delay_ = straggler_.At(step); }
  // Whether something is added to the step.
  bool pauses() const { return delay_.pause() > absl::ZeroDuration(); }
  void Pause() { Sleep(delay_.pause()); }

  // The worker is about to leave: nothing is slept any more.
  void End() { ended_ = true; }

 private:
  void Sleep(absl::Duration duration);

  Straggler straggler_;
  Clock* const clock_;
  StepDelay delay_;
  std::atomic<bool> ended_ = false;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_SLOWDOWN_H_
