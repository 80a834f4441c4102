#ifndef RUBATO_WORKER_TRAINING_STEP_WORK_H_
#define RUBATO_WORKER_TRAINING_STEP_WORK_H_

#include <cstdint>
#include <vector>

#include "proto/job_config.pb.h"
#include "worker/ps_client/parameters.h"
#include "worker/training/batch_source.h"

namespace rubato::worker {

// A batch of a step: some of its examples. With local SGD a step has several.
struct LocalBatch {
  int64_t number = 0;  // Counted from 0.
  int64_t begin = 0;
  int64_t examples = 0;
  int64_t micro_batches = 1;
  bool last = true;
  // Its position in epochs.
  double epoch = 0;
};

// Examples of a step that are computed at once.
struct MicroBatch {
  int64_t begin = 0;
  int64_t count = 0;
  bool operator==(const MicroBatch&) const = default;
};

// A step that is being computed.
struct StepWork {
  const BatchSource::Next* next = nullptr;
  Parameters::Step step;
  std::vector<LocalBatch> batches;
  double loss = 0;
  double correct = 0;
};

// The batches of a step with so many examples, at least one, as training.batch_size and micro_batches say: one of all
// examples, or with `local_sgd` as many as it takes. Pure, as below.
std::vector<LocalBatch> SplitStep(const v1::TrainingConfig& training, bool local_sgd, int64_t examples);

// The batch's micro-batch `number`, counted from 0: they are as long as each other, give or take an example.
MicroBatch MicroBatchOf(const LocalBatch& local, int64_t number);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_STEP_WORK_H_
