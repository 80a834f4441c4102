#include "coordinator/rules/learning_rate_rule.h"

#include "common/optimizer_traits.h"

namespace rubato::coordinator {
namespace {

double Contributions(const v1::JobConfig& config, v1::Mode mode, uint32_t quorum) {
  const v1::CompensationConfig& compensation = config.consistency().compensation();
  if (mode != v1::SYNC) {
    // These divide the rate themselves: by the updates that came in between, one of each other worker as a rule, and by
    // the pushes of a period.
    if (compensation.has_staleness_aware()) return config.cluster().workers();
    if (compensation.has_delayed_nesterov()) return static_cast<double>(compensation.delayed_nesterov().period());
    return 1;
  }
  return quorum > 0 ? quorum : config.cluster().workers();
}

}  // namespace

double LearningRateRule(const v1::JobConfig& config, v1::Mode mode, uint32_t quorum) {
  const v1::ConsistencyConfig& first = config.consistency();
  return LearningRateFactor(config.optimizer().algorithm(),
                            Contributions(config, mode, quorum) / Contributions(config, first.mode(), first.quorum()));
}

}  // namespace rubato::coordinator
