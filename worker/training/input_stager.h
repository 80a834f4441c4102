#ifndef RUBATO_WORKER_TRAINING_INPUT_STAGER_H_
#define RUBATO_WORKER_TRAINING_INPUT_STAGER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/model_spec.h"
#include "worker/data/prefetcher.h"
#include "worker/device/step_watchdog.h"
#include "worker/nn/replicated_model.h"
#include "worker/training/step_work.h"
#include "worker/training/trainer_progress.h"

namespace rubato::worker {

// Brings inputs to the device, if it can also ahead of their turn, beside what the device computes. Used by the
// trainer's thread.
class InputStager {
 public:
  // All outlive it; the watchdog may be null.
  InputStager(const ModelSpec* spec, ReplicatedModel* model, TrainerProgress* progress, StepWatchdog* watchdog)
      : spec_(spec), model_(model), progress_(progress), watchdog_(watchdog) {}

  // The model's next forward pass is that of this micro-batch. Copies it, unless StageAhead did. `inputs`: the batch's,
  // with the rows of tables if the model has some. Errors of the model.
  absl::Status Begin(const Batch& batch, const MicroBatch& micro_batch, const float* inputs);
  // Copies what is probably begun next; whatever else is begun instead is copied then.
  void StageAhead(const Batch& batch, const MicroBatch& micro_batch);

 private:
  // What the device was given last: a part of the examples [batch_begin, batch_end) of an epoch, which alone say what a
  // batch holds.
  struct Staged {
    int64_t epoch = -1;
    int64_t batch_begin = 0;
    int64_t batch_end = 0;
    MicroBatch micro_batch;
    bool operator==(const Staged&) const = default;
  };

  static Staged Of(const Batch& batch, const MicroBatch& micro_batch) {
    return {.epoch = batch.epoch, .batch_begin = batch.begin, .batch_end = batch.end, .micro_batch = micro_batch};
  }
  absl::Status Stage(const Batch& batch, const MicroBatch& micro_batch, const float* inputs);

  const ModelSpec* const spec_;
  ReplicatedModel* const model_;
  TrainerProgress* const progress_;
  StepWatchdog* const watchdog_;
  Staged staged_;  // Of no epoch: nothing.
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_INPUT_STAGER_H_
