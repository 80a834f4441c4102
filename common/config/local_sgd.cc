#include "common/config/local_sgd.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

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

struct Batches {
  int64_t batches;
  // Which says so.
  std::string field;
};

// The most in a step that any plan may have.
Batches Most(const v1::JobConfig& config) {
  const v1::ConsistencyConfig& consistency = config.consistency();
  Batches most = {BatchesPerStep(config), "consistency.sync_every"};
  const auto note = [&most](int64_t batches, std::string field) {
    if (batches > most.batches) most = {batches, std::move(field)};
  };
  for (int i = 0; i < consistency.schedule_size(); ++i) {
    note(consistency.schedule(i).sync_every(), absl::StrCat("consistency.schedule[", i, "].sync_every"));
  }
  if (consistency.policy() == v1::ConsistencyConfig::POST_LOCAL) {
    note(consistency.post_local().sync_every(), "consistency.post_local.sync_every");
  }
  return most;
}

}  // namespace

bool TrainsLocally(const v1::JobConfig& config) { return MostBatchesPerStep(config) > 1; }

int64_t BatchesPerStep(const v1::JobConfig& config) { return std::max<int64_t>(1, config.consistency().sync_every()); }

int64_t BatchesPerStep(const v1::JobConfig& config, const v1::Plan& plan) {
  if (plan.sync_every() == 0) return BatchesPerStep(config);
  // No more than there is memory for, whoever made the plan.
  return std::min<int64_t>(plan.sync_every(), MostBatchesPerStep(config));
}

int64_t MostBatchesPerStep(const v1::JobConfig& config) { return Most(config).batches; }

std::string WhyLocal(const v1::JobConfig& config) {
  const Batches most = Most(config);
  return absl::StrCat(most.field, " is ", most.batches);
}

int64_t ExamplesPerStep(const v1::JobConfig& config) {
  const int64_t batch = config.training().batch_size();
  const int64_t batches = MostBatchesPerStep(config);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  return batch > kMax / batches ? kMax : batch * batches;
}

v1::OptimizerConfig ServerOptimizer(const v1::JobConfig& config) {
  v1::OptimizerConfig optimizer = config.optimizer();
  const bool local = TrainsLocally(config);
  if (local) optimizer = SubtractionOfMoves();
  const v1::CompensationConfig& compensation = config.consistency().compensation();
  if (!compensation.has_delayed_nesterov()) return optimizer;
  optimizer.set_algorithm(v1::OptimizerConfig::NESTEROV);
  optimizer.set_momentum(compensation.delayed_nesterov().momentum());
  if (local) optimizer.set_learning_rate(compensation.delayed_nesterov().learning_rate());
  return optimizer;
}

}  // namespace rubato
