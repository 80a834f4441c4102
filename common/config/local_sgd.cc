#include "common/config/local_sgd.h"

#include <algorithm>
#include <limits>

namespace rubato {
namespace {

v1::OptimizerConfig SubtractionOfMoves() {
  v1::OptimizerConfig optimizer;
  optimizer.set_algorithm(v1::OptimizerConfig::SGD);
  optimizer.set_learning_rate(1);
  optimizer.mutable_schedule()->set_unit(v1::LearningRateSchedule::EPOCHS);
  optimizer.mutable_schedule()->mutable_constant();
  return optimizer;
}

}  // namespace

int64_t BatchesPerStep(const v1::JobConfig& config) { return std::max<int64_t>(1, config.consistency().sync_every()); }

int64_t ExamplesPerStep(const v1::JobConfig& config) {
  const int64_t batch = config.training().batch_size();
  const int64_t batches = BatchesPerStep(config);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  return batch > kMax / batches ? kMax : batch * batches;
}

v1::OptimizerConfig ServerOptimizer(const v1::JobConfig& config) {
  v1::OptimizerConfig optimizer = config.optimizer();
  const bool local = BatchesPerStep(config) > 1;
  if (local) optimizer = SubtractionOfMoves();
  const v1::CompensationConfig& compensation = config.consistency().compensation();
  if (!compensation.has_delayed_nesterov()) return optimizer;
  optimizer.set_algorithm(v1::OptimizerConfig::NESTEROV);
  optimizer.set_momentum(compensation.delayed_nesterov().momentum());
  if (local) optimizer.set_learning_rate(compensation.delayed_nesterov().learning_rate());
  return optimizer;
}

}  // namespace rubato
