#include "kernels/optimizer/update_rule.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/optimizer_traits.h"
#include "common/proto_enum.h"

namespace rubato {
namespace {

using v1::OptimizerConfig;

float Single(double value) { return static_cast<float>(value); }

}  // namespace

UpdateFormula FormulaOf(OptimizerConfig::Algorithm algorithm) {
  switch (algorithm) {
    case OptimizerConfig::SGD:
      return UpdateFormula::kSgd;
    case OptimizerConfig::MOMENTUM:
    case OptimizerConfig::LARS:
      return UpdateFormula::kMomentum;
    case OptimizerConfig::NESTEROV:
      return UpdateFormula::kNesterov;
    case OptimizerConfig::ADAGRAD:
      return UpdateFormula::kAdaGrad;
    case OptimizerConfig::RMSPROP:
      return UpdateFormula::kRmsProp;
    case OptimizerConfig::ADAM:
    case OptimizerConfig::ADAMW:
    case OptimizerConfig::LAMB:
      return UpdateFormula::kAdam;
    case OptimizerConfig::MEAN:
      return UpdateFormula::kMean;
    case OptimizerConfig::ALGORITHM_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::OptimizerConfig_Algorithm_OptimizerConfig_Algorithm) : break;
  }
  // Validation lets nobody come here. To train with another optimizer than the one that was asked for would be worse.
  std::abort();
}

float InitialSlotValue(const OptimizerConfig& config, int slot) {
  if (slot != 0 || !TakesParameter(config.algorithm(), optimizer::kInitialAccumulator)) return 0;
  return Single(ParameterOf(config, optimizer::kInitialAccumulator));
}

UpdateRule MakeUpdateRule(const OptimizerConfig& config, double learning_rate, int64_t update, bool decays) {
  UpdateRule rule;
  rule.formula = FormulaOf(config.algorithm());
  rule.learning_rate = Single(learning_rate);
  rule.momentum = Single(ParameterOf(config, optimizer::kMomentum));
  rule.epsilon = Single(ParameterOf(config, optimizer::kEpsilon));

  const bool decoupled = config.algorithm() == OptimizerConfig::ADAMW;
  const double decay = decays && rule.formula != UpdateFormula::kMean ? config.weight_decay() : 0;
  const bool is_lamb = config.algorithm() == OptimizerConfig::LAMB;
  rule.l2 = Single(decoupled || is_lamb ? 0 : decay);
  rule.shrink = Single(decoupled ? 1 - learning_rate * decay : 1);

  const double beta1 = ParameterOf(config, optimizer::kBeta1);
  double beta2 = ParameterOf(config, optimizer::kBeta2);
  if (rule.formula == UpdateFormula::kAdam) {
    const double t = static_cast<double>(std::max<int64_t>(update, 1));
    rule.learning_rate = Single((is_lamb && decays ? 1 : learning_rate) / (1 - std::pow(beta1, t)));
    rule.second_moment_scale = Single(1 / std::sqrt(1 - std::pow(beta2, t)));
  } else if (rule.formula == UpdateFormula::kRmsProp) {
    beta2 = ParameterOf(config, optimizer::kRho);
  }
  if (decays && is_lamb) {
    rule.trust_ratio = TrustRatio::kLamb;
    rule.trust_scale = Single(learning_rate);
    rule.step_decay = Single(decay);
  } else if (decays && config.algorithm() == OptimizerConfig::LARS) {
    rule.trust_ratio = TrustRatio::kLars;
    rule.trust_scale = Single(ParameterOf(config, optimizer::kTrustCoefficient));
  }
  rule.beta1 = Single(beta1);
  rule.beta1_complement = Single(1 - beta1);
  rule.beta2 = Single(beta2);
  rule.beta2_complement = Single(1 - beta2);
  return rule;
}

}  // namespace rubato
