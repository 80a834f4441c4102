#ifndef RUBATO_COMMON_OPTIMIZER_TRAITS_H_
#define RUBATO_COMMON_OPTIMIZER_TRAITS_H_

#include <vector>

#include "common/proto_enum.h"
#include "proto/job_config.pb.h"

// What a config says about each optimizer, once: the numbers that it takes, with their defaults and ranges. Defaults,
// validation and the update rule read it here. The formulas are in kernels/optimizer/update_formula.h. All functions
// are pure.

namespace rubato {

// Which finite numbers a field may have, and how an error says it.
struct NumberRange {
  bool (*holds)(double value);
  const char* text;
};

// A field of OptimizerConfig that only some algorithms take.
struct OptimizerParameter {
  bool (v1::OptimizerConfig::*is_set)() const;
  double (v1::OptimizerConfig::*get)() const;
  void (v1::OptimizerConfig::*set)(double value);
  const char* field;
  double default_value;
  NumberRange range;
};

// What the config says, or the default if it says nothing.
inline double ParameterOf(const v1::OptimizerConfig& config, const OptimizerParameter& parameter) {
  return (config.*parameter.is_set)() ? (config.*parameter.get)() : parameter.default_value;
}

namespace optimizer {

inline constexpr NumberRange kBelowOne = {[](double value) { return value >= 0 && value < 1; },
                                          "0 or more, less than 1"};
inline constexpr NumberRange kPositive = {[](double value) { return value > 0; }, "a number > 0"};
inline constexpr NumberRange kNotNegative = {[](double value) { return value >= 0; }, "a number >= 0"};

// A field's functions and its name.
#define RUBATO_FIELD(field) \
  &v1::OptimizerConfig::has_##field, &v1::OptimizerConfig::field, &v1::OptimizerConfig::set_##field, #field

inline constexpr OptimizerParameter kMomentum = {RUBATO_FIELD(momentum), 0.9, kBelowOne};
inline constexpr OptimizerParameter kBeta1 = {RUBATO_FIELD(beta1), 0.9, kBelowOne};
inline constexpr OptimizerParameter kBeta2 = {RUBATO_FIELD(beta2), 0.999, kBelowOne};
inline constexpr OptimizerParameter kRho = {RUBATO_FIELD(rho), 0.9, kBelowOne};
inline constexpr OptimizerParameter kEpsilon = {RUBATO_FIELD(epsilon), 1e-8, kPositive};
inline constexpr OptimizerParameter kTrustCoefficient = {RUBATO_FIELD(trust_coefficient), 0.001, kPositive};
// What every element of the first slot starts with; 0 if an algorithm does not take it.
inline constexpr OptimizerParameter kInitialAccumulator = {RUBATO_FIELD(initial_accumulator), 0.1, kNotNegative};

#undef RUBATO_FIELD

// In the order in which errors name them.
inline constexpr const OptimizerParameter* kAll[] = {&kMomentum,           &kBeta1,           &kBeta2, &kRho, &kEpsilon,
                                                     &kInitialAccumulator, &kTrustCoefficient};

}  // namespace optimizer

// The numbers that an algorithm takes beside those that all take. None for what is no algorithm.
inline std::vector<const OptimizerParameter*> ParametersOf(v1::OptimizerConfig::Algorithm algorithm) {
  switch (algorithm) {
    case v1::OptimizerConfig::SGD:
    case v1::OptimizerConfig::MEAN:
      return {};
    case v1::OptimizerConfig::MOMENTUM:
    case v1::OptimizerConfig::NESTEROV:
      return {&optimizer::kMomentum};
    case v1::OptimizerConfig::ADAGRAD:
      return {&optimizer::kEpsilon, &optimizer::kInitialAccumulator};
    case v1::OptimizerConfig::RMSPROP:
      return {&optimizer::kRho, &optimizer::kEpsilon};
    case v1::OptimizerConfig::ADAM:
    case v1::OptimizerConfig::ADAMW:
    case v1::OptimizerConfig::LAMB:
      return {&optimizer::kBeta1, &optimizer::kBeta2, &optimizer::kEpsilon};
    case v1::OptimizerConfig::LARS:
      return {&optimizer::kMomentum, &optimizer::kTrustCoefficient};
    case v1::OptimizerConfig::ALGORITHM_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::OptimizerConfig_Algorithm_OptimizerConfig_Algorithm) : break;
  }
  return {};
}

// Whether an update of a tensor depends on norms of the whole tensor, so that it cannot be cut into chunks.
bool NeedsWholeTensors(v1::OptimizerConfig::Algorithm algorithm);

bool TakesParameter(v1::OptimizerConfig::Algorithm algorithm, const OptimizerParameter& parameter);

// The factor on a learning rate that was chosen for updates of some number of contributions, for updates of
// `contributions` times as many, so that an example moves the weights as far: the same factor (Goyal and others 2017,
// "Accurate, large minibatch SGD"; Sync-Switch's logs agree), or its square root with optimizers that divide by the
// gradient's size (Malladi and others 2022, "On the SDEs and scaling rules for adaptive gradient algorithms"; You and
// others 2020 for LAMB).
double LearningRateFactor(v1::OptimizerConfig::Algorithm algorithm, double contributions);

// Every algorithm, in the order of the enum.
std::vector<v1::OptimizerConfig::Algorithm> AllAlgorithms();

}  // namespace rubato

#endif  // RUBATO_COMMON_OPTIMIZER_TRAITS_H_
