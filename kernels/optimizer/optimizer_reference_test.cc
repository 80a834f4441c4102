// Every optimizer against its paper's formula in double precision, over many steps, and cases with a closed form.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/optimizer_traits.h"
#include "common/proto_enum.h"
#include "common/random.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato {
namespace {

using v1::OptimizerConfig;

// The formulas of update_rule.h, one weight at a time.
struct Reference {
  OptimizerConfig config;
  double w = 0, first = 0, second = 0;

  void Step(double g, double lr, int64_t t, bool decays) {
    const double decay = decays ? config.weight_decay() : 0;
    const double gradient = g;
    if (config.algorithm() == OptimizerConfig::ADAMW) {
      w -= lr * decay * w;
    } else {
      g += decay * w;
    }
    switch (config.algorithm()) {
      case OptimizerConfig::MOMENTUM:
        first = config.momentum() * first + g;
        w -= lr * first;
        return;
      case OptimizerConfig::NESTEROV:
        first = config.momentum() * first + g;
        w -= lr * (g + config.momentum() * first);
        return;
      case OptimizerConfig::ADAGRAD:
        first += g * g;
        w -= lr * g / (std::sqrt(first) + config.epsilon());
        return;
      case OptimizerConfig::RMSPROP:
        first = config.rho() * first + (1 - config.rho()) * g * g;
        w -= lr * g / (std::sqrt(first) + config.epsilon());
        return;
      case OptimizerConfig::ADAM:
      case OptimizerConfig::ADAMW: {
        first = config.beta1() * first + (1 - config.beta1()) * g;
        second = config.beta2() * second + (1 - config.beta2()) * g * g;
        const double m_hat = first / (1 - std::pow(config.beta1(), t));
        const double v_hat = second / (1 - std::pow(config.beta2(), t));
        w -= lr * m_hat / (std::sqrt(v_hat) + config.epsilon());
        return;
      }
      case OptimizerConfig::SGD:
        w -= lr * g;
        return;
      case OptimizerConfig::MEAN:
        w = gradient;
        return;
      case OptimizerConfig::ALGORITHM_UNSPECIFIED:
        RUBATO_NO_VALUE_OF(v1::OptimizerConfig_Algorithm_OptimizerConfig_Algorithm) : FAIL() << "is no algorithm";
    }
  }
};

OptimizerConfig Config(OptimizerConfig::Algorithm algorithm) {
  OptimizerConfig config;
  config.set_algorithm(algorithm);
  config.set_momentum(0.8);
  config.set_beta1(0.85);
  config.set_beta2(0.99);
  config.set_rho(0.95);
  config.set_epsilon(1e-6);
  config.set_initial_accumulator(0.2);
  config.set_weight_decay(0.02);
  return config;
}

// Weights and slots of `n` elements as a server keeps them.
struct State {
  State(const OptimizerConfig& config, std::vector<float> initial) : weights(std::move(initial)) {
    for (int slot = 0; slot < NumSlots(config.algorithm()); ++slot) {
      storage.emplace_back(weights.size(), InitialSlotValue(config, slot));
    }
    for (std::vector<float>& slot : storage) slots.push_back(slot.data());
  }
  void Step(const UpdateRule& rule, const std::vector<float>& gradient) {
    const ByteSpan piece = BytesOf(gradient.data(), static_cast<int64_t>(gradient.size()));
    const EncodedGradient alone = {.pieces = {&piece, 1}};
    ReduceAndApply(rule, &alone, 1, weights.data(), weights.data(), slots.data(), slots.data(),
                   static_cast<int64_t>(weights.size()));
  }
  std::vector<float> weights;
  std::vector<std::vector<float>> storage;
  std::vector<float*> slots;
};

class OptimizerReferenceTest : public testing::TestWithParam<OptimizerConfig::Algorithm> {};

TEST_P(OptimizerReferenceTest, FollowsTheFormulaForManySteps) {
  const OptimizerConfig config = Config(GetParam());
  const int n = 37, steps = 500;
  Random random(11);
  std::vector<float> initial(n);
  for (float& w : initial) w = static_cast<float>(random.Normal());
  for (bool decays : {true, false}) {
    State state(config, initial);
    std::vector<Reference> references(n);
    for (int i = 0; i < n; ++i) references[i] = {config, initial[i], InitialSlotValue(config, 0), 0};
    for (int t = 1; t <= steps; ++t) {
      const double learning_rate = 0.01 / (1 + 0.01 * t);
      std::vector<float> gradient(n);
      for (float& g : gradient) g = static_cast<float>(random.Normal());
      state.Step(MakeUpdateRule(config, learning_rate, t, decays), gradient);
      for (int i = 0; i < n; ++i) references[i].Step(gradient[i], learning_rate, t, decays);
    }
    for (int i = 0; i < n; ++i) EXPECT_NEAR(state.weights[i], references[i].w, 2e-5) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerReferenceTest, testing::ValuesIn(AllAlgorithms()),
                         [](const auto& info) { return OptimizerConfig::Algorithm_Name(info.param); });

TEST(OptimizerClosedFormTest, FirstStepOfAdamIsTheLearningRateTimesTheSign) {
  OptimizerConfig config;
  config.set_algorithm(OptimizerConfig::ADAM);
  State state(config, {0, 0, 0, 0});
  state.Step(MakeUpdateRule(config, 0.001, 1, true), {5.0f, -0.01f, 1e-3f, 0.0f});
  EXPECT_NEAR(state.weights[0], -0.001, 1e-8);
  EXPECT_NEAR(state.weights[1], 0.001, 1e-8);
  EXPECT_NEAR(state.weights[2], -0.001, 2e-8);
  EXPECT_EQ(state.weights[3], 0.0f);
}

TEST(OptimizerClosedFormTest, MomentumOfAConstantGradientIsAGeometricSum) {
  OptimizerConfig config;
  config.set_algorithm(OptimizerConfig::MOMENTUM);
  config.set_momentum(0.5);
  State state(config, {1.0f});
  double expected = 1;
  for (int t = 1; t <= 20; ++t) {
    state.Step(MakeUpdateRule(config, 0.1, t, true), {1.0f});
    expected -= 0.1 * (1 - std::pow(0.5, t)) / (1 - 0.5);
    EXPECT_NEAR(state.weights[0], expected, 1e-6);
  }
}

TEST(OptimizerClosedFormTest, NesterovLooksOneStepFurtherThanMomentum) {
  OptimizerConfig config;
  config.set_algorithm(OptimizerConfig::NESTEROV);
  config.set_momentum(0.5);
  State state(config, {0.0f});
  state.Step(MakeUpdateRule(config, 1.0, 1, true), {1.0f});
  EXPECT_FLOAT_EQ(state.weights[0], -1.5f);
}

TEST(OptimizerClosedFormTest, AdaGradOfAConstantGradientSlowsDownWithTheRoot) {
  OptimizerConfig config;
  config.set_algorithm(OptimizerConfig::ADAGRAD);
  config.set_initial_accumulator(0);
  State state(config, {0.0f});
  double expected = 0;
  for (int t = 1; t <= 50; ++t) {
    state.Step(MakeUpdateRule(config, 0.1, t, true), {3.0f});
    expected -= 0.1 / std::sqrt(t);
    EXPECT_NEAR(state.weights[0], expected, 1e-5);
  }
}

TEST(OptimizerClosedFormTest, FirstStepOfRmsPropIsScaledByTheRootOfItsDecay) {
  OptimizerConfig config;
  config.set_algorithm(OptimizerConfig::RMSPROP);
  config.set_rho(0.75);
  State state(config, {0.0f});
  state.Step(MakeUpdateRule(config, 0.1, 1, true), {4.0f});
  EXPECT_NEAR(state.weights[0], -0.1 / std::sqrt(0.25), 1e-6);
}

TEST(OptimizerClosedFormTest, MeanLeavesNothingOfTheWeightBefore) {
  OptimizerConfig config;
  config.set_algorithm(OptimizerConfig::MEAN);
  config.set_weight_decay(0.5);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  State state(config, {nan, infinity, 3.0f, 3.0f, 3.0f});
  state.Step(MakeUpdateRule(config, 0.1, 1, true), {1.0f, -0.0f, 0.1f, infinity, nan});
  EXPECT_EQ(state.weights[0], 1.0f);
  EXPECT_EQ(state.weights[1], 0.0f);
  EXPECT_TRUE(std::signbit(state.weights[1]));
  EXPECT_EQ(state.weights[2], 0.1f);
  EXPECT_EQ(state.weights[3], infinity);
  EXPECT_TRUE(std::isnan(state.weights[4]));
}

TEST(OptimizerClosedFormTest, AdamWWithoutGradientOnlyShrinks) {
  OptimizerConfig config;
  config.set_algorithm(OptimizerConfig::ADAMW);
  config.set_weight_decay(0.5);
  State state(config, {2.0f});
  state.Step(MakeUpdateRule(config, 0.1, 1, true), {0.0f});
  EXPECT_FLOAT_EQ(state.weights[0], 2.0f * 0.95f);
}

}  // namespace
}  // namespace rubato
