#ifndef RUBATO_WORKER_TRAINING_TRAINER_PROGRESS_H_
#define RUBATO_WORKER_TRAINING_TRAINER_PROGRESS_H_

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/trace/trace_recorder.h"
#include "proto/coordinator.pb.h"
#include "worker/device/step_watchdog.h"

namespace rubato::worker {

// What a trainer tells of its work: the totals of a heartbeat, and the spans of a trace. Describe from any thread, all
// else on the trainer's.
//
//   progress.BeginStep(7);
//   { TrainerProgress::Timed timed(&progress, kForward, layer.name); ... }
//   progress.EndStep();
class TrainerProgress {
 public:
  // Each has a total of its own.
  enum class Phase { kData, kCompute, kPush, kPullWait };

  // Something that a trainer does again and again; a constant.
  struct Activity {
    constexpr Activity(Phase phase, const char* what)
        : Activity(phase, what, phase == Phase::kCompute || phase == Phase::kPush) {}
    constexpr Activity(Phase phase, const char* what, bool may_hang)
        : phase(phase), may_hang(may_hang), kind{Category(phase), what, {"step"}} {}

    Phase phase;
    // The watchdog is told of it.
    bool may_hang;
    TraceKind kind;
  };

  // Counts what happens in its scope. In the trace it is "<what> <subject>", of the step that was begun last.
  class Timed {
   public:
    // The subject outlives it.
    Timed(TrainerProgress* progress, const Activity& activity, absl::string_view subject = "")
        : progress_(progress), activity_(activity), subject_(subject), begin_(progress->clock_->Now()) {
      if (activity.may_hang) watch_.emplace(progress->watchdog_, activity.kind.name, subject);
    }
    ~Timed() { progress_->Add(*this); }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    friend class TrainerProgress;

    TrainerProgress* const progress_;
    const Activity& activity_;
    const absl::string_view subject_;
    const absl::Time begin_;
    std::optional<StepWatchdog::Watch> watch_;
  };

  // `trace` and `watchdog` may be null. The watchdog is told of steps, and of what computes and pushes in them.
  TrainerProgress(const Clock* clock, TraceRecorder* trace, StepWatchdog* watchdog);

  // The trainer turns to `step`. Again, for this or another step, if it is moved.
  void BeginStep(int64_t step);
  // Its weights are there, under the plan `generation`.
  void EnterStep(int64_t step, uint64_t generation);
  // Pushed.
  void EndStep();
  void AddExamples(int64_t examples, double loss, double correct, double epoch);
  void AddNonFinite();
  // FP16: of the loss scaler.
  void SetLossScale(double scale, int64_t overflows);

  int64_t steps_total();
  void Describe(v1::WorkerProgress* progress);

 private:
  static constexpr const char* Category(Phase phase) {
    switch (phase) {
      case Phase::kData:
        return "data";
      case Phase::kCompute:
        return "compute";
      case Phase::kPush:
        return "push";
      case Phase::kPullWait:
        return "pull";
    }
    return "";
  }

  void Add(const Timed& timed);

  const Clock* const clock_;
  TraceRecorder* const trace_;
  const TraceTrack track_;
  StepWatchdog* const watchdog_;
  int64_t step_ = 0;
  absl::Time step_begin_;
  // Of the step, for weights.
  absl::Duration step_wait_;
  // Of the step, that were computed.
  int64_t step_examples_ = 0;
  Mutex mu_;
  v1::WorkerProgress progress_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_TRAINER_PROGRESS_H_
