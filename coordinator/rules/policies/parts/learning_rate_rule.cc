#include "coordinator/rules/policies/parts/learning_rate_rule.h"

#include <cmath>

#include "common/proto_enum.h"

namespace rubato::coordinator {
namespace {

using Optimizer = v1::OptimizerConfig;

double Contributions(const v1::JobConfig& config, v1::Mode mode, uint32_t quorum) {
  if (mode != v1::SYNC) return 1;
  return quorum > 0 ? quorum : config.cluster().workers();
}

// The power of the contributions that the rate goes with.
double Power(Optimizer::Algorithm algorithm) {
  switch (algorithm) {
    case Optimizer::SGD:
    case Optimizer::MOMENTUM:
    case Optimizer::NESTEROV:
      return 1;
    case Optimizer::ADAGRAD:
    case Optimizer::RMSPROP:
    case Optimizer::ADAM:
    case Optimizer::ADAMW:
      return 0.5;
    // It has no rate.
    case Optimizer::MEAN:
      return 0;
    case Optimizer::ALGORITHM_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::OptimizerConfig_Algorithm_OptimizerConfig_Algorithm) : break;
  }
  return 1;
}

}  // namespace

double LearningRateRule(const v1::JobConfig& config, v1::Mode mode, uint32_t quorum) {
  const v1::ConsistencyConfig& first = config.consistency();
  const double ratio = Contributions(config, mode, quorum) / Contributions(config, first.mode(), first.quorum());
  return std::pow(ratio, Power(config.optimizer().algorithm()));
}

}  // namespace rubato::coordinator
