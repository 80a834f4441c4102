#ifndef RUBATO_WORKER_TRAINER_PROGRESS_H_
#define RUBATO_WORKER_TRAINER_PROGRESS_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/trace/trace_recorder.h"
#include "proto/coordinator.pb.h"

namespace rubato::worker {

// What a trainer tells of its work: the totals of a heartbeat, and the spans of a trace. Describe from any thread, all
// else on the trainer's.
//
//   progress.BeginStep(7);
//   { TrainerProgress::Timed timed(&progress, TrainerProgress::Phase::kCompute, "forward", layer.name); ... }
//   progress.EndStep();
class TrainerProgress {
 public:
  // Each has a total of its own.
  enum class Phase { kData, kCompute, kPush, kPullWait };

  // Counts what happens in its scope. In the trace it is "<what> <subject>", of the step that was begun last.
  class Timed {
   public:
    // The texts outlive it.
    Timed(TrainerProgress* progress, Phase phase, absl::string_view what, absl::string_view subject = "")
        : progress_(progress), phase_(phase), what_(what), subject_(subject), begin_(progress->clock_->Now()) {}
    ~Timed() { progress_->Add(*this); }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    friend class TrainerProgress;

    TrainerProgress* const progress_;
    const Phase phase_;
    const absl::string_view what_;
    const absl::string_view subject_;
    const absl::Time begin_;
  };

  // `trace` may be null.
  TrainerProgress(const Clock* clock, TraceRecorder* trace) : clock_(clock), trace_(trace) {}

  // The trainer turns to `step`. Again, for this or another step, where it is moved.
  void BeginStep(int64_t step);
  // Its weights are there, under the plan `generation`.
  void EnterStep(int64_t step, uint64_t generation);
  // Pushed.
  void EndStep();
  void AddExamples(int64_t examples, double loss, double correct, double epoch);
  void AddNonFinite();

  int64_t steps_total();
  void Describe(v1::WorkerProgress* progress);

 private:
  void Add(const Timed& timed);

  const Clock* const clock_;
  TraceRecorder* const trace_;
  int64_t step_ = 0;
  absl::Time step_begin_;
  Mutex mu_;
  v1::WorkerProgress progress_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINER_PROGRESS_H_
