#include "kernels/optimizer/update_rule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/optimizer_traits.h"
#include "common/proto_enum.h"

namespace rubato {
namespace {

v1::OptimizerConfig Config(v1::OptimizerConfig::Algorithm algorithm) {
  v1::OptimizerConfig config;
  config.set_algorithm(algorithm);
  config.set_learning_rate(0.1);
  return config;
}

// As the papers have it.
struct Expected {
  UpdateFormula formula = UpdateFormula::kSgd;
  int slots = -1;
};

Expected ExpectedOf(v1::OptimizerConfig::Algorithm algorithm) {
  switch (algorithm) {
    case v1::OptimizerConfig::SGD:
      return {UpdateFormula::kSgd, 0};
    case v1::OptimizerConfig::MOMENTUM:
    case v1::OptimizerConfig::LARS:
      return {UpdateFormula::kMomentum, 1};
    case v1::OptimizerConfig::NESTEROV:
      return {UpdateFormula::kNesterov, 1};
    case v1::OptimizerConfig::ADAGRAD:
      return {UpdateFormula::kAdaGrad, 1};
    case v1::OptimizerConfig::RMSPROP:
      return {UpdateFormula::kRmsProp, 1};
    case v1::OptimizerConfig::ADAM:
    case v1::OptimizerConfig::ADAMW:
    case v1::OptimizerConfig::LAMB:
      return {UpdateFormula::kAdam, 2};
    case v1::OptimizerConfig::MEAN:
      return {UpdateFormula::kMean, 0};
    case v1::OptimizerConfig::ALGORITHM_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::OptimizerConfig_Algorithm_OptimizerConfig_Algorithm) : break;
  }
  return {};
}

TEST(UpdateRuleTest, FormulaAndSlotsFollowTheAlgorithm) {
  for (v1::OptimizerConfig::Algorithm algorithm : AllAlgorithms()) {
    SCOPED_TRACE(v1::OptimizerConfig::Algorithm_Name(algorithm));
    const Expected expected = ExpectedOf(algorithm);
    EXPECT_EQ(FormulaOf(algorithm), expected.formula);
    EXPECT_EQ(MakeUpdateRule(Config(algorithm), 0.1, 1, true).formula, expected.formula);
    EXPECT_EQ(NumSlots(algorithm), expected.slots);
  }
}

TEST(UpdateRuleDeathTest, NobodyTrainsWithoutAnAlgorithm) {
  EXPECT_DEATH(FormulaOf(v1::OptimizerConfig::ALGORITHM_UNSPECIFIED), "");
  EXPECT_DEATH(MakeUpdateRule(Config(static_cast<v1::OptimizerConfig::Algorithm>(99)), 0.1, 1, true), "");
}

TEST(UpdateRuleTest, OnlyAdaGradStartsWithSomethingElseThanZero) {
  v1::OptimizerConfig config = Config(v1::OptimizerConfig::ADAGRAD);
  EXPECT_EQ(InitialSlotValue(config, 0), 0.1f);
  config.set_initial_accumulator(0.5);
  EXPECT_EQ(InitialSlotValue(config, 0), 0.5f);
  config.set_algorithm(v1::OptimizerConfig::ADAM);
  EXPECT_EQ(InitialSlotValue(config, 0), 0.0f);
  EXPECT_EQ(InitialSlotValue(config, 1), 0.0f);
}

TEST(UpdateRuleTest, AbsentFieldsHaveTheirDocumentedDefaults) {
  const UpdateRule adam = MakeUpdateRule(Config(v1::OptimizerConfig::ADAM), 0.1, 1, true);
  EXPECT_EQ(adam.beta1, 0.9f);
  EXPECT_EQ(adam.beta2, 0.999f);
  EXPECT_EQ(adam.epsilon, 1e-8f);
  EXPECT_EQ(MakeUpdateRule(Config(v1::OptimizerConfig::MOMENTUM), 0.1, 1, true).momentum, 0.9f);
  EXPECT_EQ(MakeUpdateRule(Config(v1::OptimizerConfig::RMSPROP), 0.1, 1, true).beta2, 0.9f);
}

TEST(UpdateRuleTest, ExplicitZerosAreKept) {
  v1::OptimizerConfig config = Config(v1::OptimizerConfig::ADAM);
  config.set_beta1(0);
  config.set_momentum(0);
  const UpdateRule rule = MakeUpdateRule(config, 0.1, 5, true);
  EXPECT_EQ(rule.beta1, 0.0f);
  EXPECT_EQ(rule.beta1_complement, 1.0f);
  EXPECT_EQ(rule.momentum, 0.0f);
  EXPECT_EQ(rule.learning_rate, 0.1f);
}

TEST(UpdateRuleTest, WeightDecayIsDecoupledOnlyUnderAdamW) {
  v1::OptimizerConfig config = Config(v1::OptimizerConfig::ADAM);
  config.set_weight_decay(0.01);
  EXPECT_EQ(MakeUpdateRule(config, 0.1, 1, true).l2, 0.01f);
  EXPECT_EQ(MakeUpdateRule(config, 0.1, 1, true).shrink, 1.0f);
  config.set_algorithm(v1::OptimizerConfig::ADAMW);
  EXPECT_EQ(MakeUpdateRule(config, 0.1, 1, true).l2, 0.0f);
  EXPECT_EQ(MakeUpdateRule(config, 0.1, 1, true).shrink, 0.999f);
}

TEST(UpdateRuleTest, TensorsThatDoNotDecayAreExempt) {
  v1::OptimizerConfig config = Config(v1::OptimizerConfig::SGD);
  config.set_weight_decay(0.01);
  EXPECT_EQ(MakeUpdateRule(config, 0.1, 1, false).l2, 0.0f);
  config.set_algorithm(v1::OptimizerConfig::ADAMW);
  EXPECT_EQ(MakeUpdateRule(config, 0.1, 1, false).shrink, 1.0f);
}

TEST(UpdateRuleTest, OnlyLarsAndLambHaveATrustRatio) {
  for (v1::OptimizerConfig::Algorithm algorithm : AllAlgorithms()) {
    SCOPED_TRACE(v1::OptimizerConfig::Algorithm_Name(algorithm));
    const UpdateRule rule = MakeUpdateRule(Config(algorithm), 0.1, 1, true);
    EXPECT_EQ(rule.trust_ratio != TrustRatio::kNone, NeedsWholeTensors(algorithm));
    EXPECT_EQ(MakeUpdateRule(Config(algorithm), 0.1, 1, false).trust_ratio, TrustRatio::kNone);
  }
  EXPECT_EQ(MakeUpdateRule(Config(v1::OptimizerConfig::LARS), 0.1, 1, true).trust_scale, 0.001f);
  v1::OptimizerConfig lamb = Config(v1::OptimizerConfig::LAMB);
  lamb.set_weight_decay(0.01);
  const UpdateRule rule = MakeUpdateRule(lamb, 0.1, 1, true);
  EXPECT_EQ(rule.trust_scale, 0.1f);
  EXPECT_EQ(rule.step_decay, 0.01f);
  EXPECT_EQ(rule.l2, 0.0f);
  EXPECT_EQ(MakeUpdateRule(lamb, 0.1, 1, false).step_decay, 0.0f);
}

TEST(UpdateRuleTest, BiasCorrectionVanishesWithTime) {
  const v1::OptimizerConfig config = Config(v1::OptimizerConfig::ADAM);
  EXPECT_FLOAT_EQ(MakeUpdateRule(config, 0.1, 1, true).learning_rate, 1.0f);
  EXPECT_FLOAT_EQ(MakeUpdateRule(config, 0.1, 1, true).second_moment_scale, std::sqrt(1000.0f));
  EXPECT_EQ(MakeUpdateRule(config, 0.1, int64_t{1} << 40, true).learning_rate, 0.1f);
  EXPECT_EQ(MakeUpdateRule(config, 0.1, int64_t{1} << 40, true).second_moment_scale, 1.0f);
}

}  // namespace
}  // namespace rubato
