#include "coordinator/rules/learning_rate_rule.h"

#include <cmath>

#include "common/optimizer_traits.h"

namespace rubato::coordinator {
namespace {

double Contributions(const v1::JobConfig& config, v1::Mode mode, uint32_t quorum) {
  if (mode != v1::SYNC) return 1;
  return quorum > 0 ? quorum : config.cluster().workers();
}

}  // namespace

double LearningRateRule(const v1::JobConfig& config, v1::Mode mode, uint32_t quorum) {
  const v1::ConsistencyConfig& first = config.consistency();
  const double ratio = Contributions(config, mode, quorum) / Contributions(config, first.mode(), first.quorum());
  // What is added to the gradient's size is there to divide by it.
  const bool adaptive = TakesParameter(config.optimizer().algorithm(), optimizer::kEpsilon);
  return adaptive ? std::sqrt(ratio) : ratio;
}

}  // namespace rubato::coordinator
