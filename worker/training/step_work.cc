#include "worker/training/step_work.h"

#include <algorithm>

namespace rubato::worker {

std::vector<LocalBatch> SplitStep(const v1::TrainingConfig& training, bool local_sgd, int64_t examples) {
  const int64_t size = local_sgd ? training.batch_size() : examples;
  std::vector<LocalBatch> batches;
  for (int64_t begin = 0; begin < examples; begin += size) {
    const int64_t count = std::min(size, examples - begin);
    batches.push_back({.number = begin / size,
                       .begin = begin,
                       .examples = count,
                       .micro_batches = std::min<int64_t>(training.micro_batches(), count),
                       .last = begin + count == examples});
  }
  return batches;
}

MicroBatch MicroBatchOf(const LocalBatch& local, int64_t number) {
  const int64_t begin = local.examples * number / local.micro_batches;
  const int64_t end = local.examples * (number + 1) / local.micro_batches;
  return {.begin = local.begin + begin, .count = end - begin};
}

}  // namespace rubato::worker
