#include "common/optimizer_traits.h"

#include <algorithm>
#include <cmath>

namespace rubato {

using v1::OptimizerConfig;

bool NeedsWholeTensors(OptimizerConfig::Algorithm algorithm) {
  return algorithm == OptimizerConfig::LARS || algorithm == OptimizerConfig::LAMB;
}

bool TakesParameter(OptimizerConfig::Algorithm algorithm, const OptimizerParameter& parameter) {
  const std::vector<const OptimizerParameter*> taken = ParametersOf(algorithm);
  return std::find(taken.begin(), taken.end(), &parameter) != taken.end();
}

double LearningRateFactor(OptimizerConfig::Algorithm algorithm, double contributions) {
  // What is added to the gradient's size is there to divide by it.
  const bool divides = TakesParameter(algorithm, optimizer::kEpsilon) || NeedsWholeTensors(algorithm);
  return divides ? std::sqrt(contributions) : contributions;
}

std::vector<OptimizerConfig::Algorithm> AllAlgorithms() {
  std::vector<OptimizerConfig::Algorithm> all;
  const google::protobuf::EnumDescriptor* values = OptimizerConfig::Algorithm_descriptor();
  for (int i = 0; i < values->value_count(); ++i) {
    const auto algorithm = static_cast<OptimizerConfig::Algorithm>(values->value(i)->number());
    if (algorithm != OptimizerConfig::ALGORITHM_UNSPECIFIED) all.push_back(algorithm);
  }
  return all;
}

}  // namespace rubato
