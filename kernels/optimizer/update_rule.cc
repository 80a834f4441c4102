#include "kernels/optimizer/update_rule.h"

#include <algorithm>
#include <cmath>

namespace rubato {

using v1::OptimizerConfig;

int NumSlots(OptimizerConfig::Algorithm algorithm) {
  switch (algorithm) {
    case OptimizerConfig::MOMENTUM:
    case OptimizerConfig::NESTEROV:
    case OptimizerConfig::ADAGRAD:
    case OptimizerConfig::RMSPROP:
      return 1;
    case OptimizerConfig::ADAM:
    case OptimizerConfig::ADAMW:
      return 2;
    default:
      return 0;
  }
}

float InitialSlotValue(const OptimizerConfig& config, int slot) {
  if (config.algorithm() != OptimizerConfig::ADAGRAD || slot != 0) return 0;
  return static_cast<float>(config.has_initial_accumulator() ? config.initial_accumulator() : 0.1);
}

UpdateRule MakeUpdateRule(const OptimizerConfig& config, double learning_rate, int64_t update, bool decays) {
  UpdateRule rule;
  rule.algorithm = config.algorithm();
  rule.learning_rate = static_cast<float>(learning_rate);
  rule.momentum = static_cast<float>(config.has_momentum() ? config.momentum() : 0.9);
  rule.epsilon = static_cast<float>(config.has_epsilon() ? config.epsilon() : 1e-8);

  const bool adamw = config.algorithm() == OptimizerConfig::ADAMW;
  const double decay = decays ? config.weight_decay() : 0;
  rule.l2 = static_cast<float>(adamw ? 0 : decay);
  rule.shrink = static_cast<float>(adamw ? 1 - learning_rate * decay : 1);

  const double beta1 = config.has_beta1() ? config.beta1() : 0.9;
  double beta2 = config.has_beta2() ? config.beta2() : 0.999;
  if (adamw || config.algorithm() == OptimizerConfig::ADAM) {
    const double t = static_cast<double>(std::max<int64_t>(update, 1));
    rule.learning_rate = static_cast<float>(learning_rate / (1 - std::pow(beta1, t)));
    rule.second_moment_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)));
  } else if (config.algorithm() == OptimizerConfig::RMSPROP) {
    beta2 = config.has_rho() ? config.rho() : 0.9;
  }
  rule.beta1 = static_cast<float>(beta1);
  rule.beta1_complement = static_cast<float>(1 - beta1);
  rule.beta2 = static_cast<float>(beta2);
  rule.beta2_complement = static_cast<float>(1 - beta2);
  return rule;
}

}  // namespace rubato
