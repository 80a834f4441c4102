#ifndef RUBATO_WORKER_TRAINING_STATIC_SOURCE_H_
#define RUBATO_WORKER_TRAINING_STATIC_SOURCE_H_

#include <cstdint>
#include <optional>

#include "proto/job_config.pb.h"
#include "worker/device/step_watchdog.h"
#include "worker/training/batch_source.h"

namespace rubato::worker {

// STATIC dispatch: a step's examples follow from its plan and number alone (common/static_partition.h), so that a run
// can be repeated bit by bit. Prepares the next steps ahead, as long as the plan holds. Not thread-safe.
class StaticSource : public BatchSource {
 public:
  struct Options {
    const v1::JobConfig* config = nullptr;
    v1::TaskId task;
    int64_t train_examples = 0;
    Prefetcher* prefetcher = nullptr;
    // Is told when the reader is waited for. May be null.
    StepWatchdog* watchdog = nullptr;
  };

  explicit StaticSource(const Options& options) : options_(options) {}

  // Aborted when the task is not among the plan's members.
  absl::StatusOr<Next> Get(const Parameters::Step& step) override;
  void Begun() override { begun_ = true; }
  const Batch* Upcoming() override { return options_.prefetcher->Peek(); }
  void Stopped() override {}

 private:
  // Forgets what was prepared and starts with `step` of its plan.
  absl::Status EnterPlan(const Parameters::Step& step);
  absl::Status PrepareAhead();

  const Options options_;
  v1::Plan plan_;
  // Among whom examples are divided, and the place of this worker.
  int64_t members_ = 0;
  int64_t rank_ = -1;
  int64_t end_step_ = 0;       // Of the job, under this plan.
  int64_t prepared_to_ = 0;    // The steps in [the current one, prepared_to_) were given to the prefetcher.
  int64_t current_step_ = -1;  // The one that batch_ is for.
  std::optional<Batch> batch_;
  bool begun_ = false;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_STATIC_SOURCE_H_
