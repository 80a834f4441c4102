// Every optimizer against its paper's formula in double precision, over many steps, and cases with a closed form.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/optimizer_traits.h"
#include "common/proto_enum.h"
#include "common/random.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/trust_ratio.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato {
namespace {

using v1::OptimizerConfig;

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// The formulas of update_rule.h, of one tensor.
struct Reference {
  Reference(const OptimizerConfig& c, const std::vector<float>& initial)
      : config(c),
        w(initial.begin(), initial.end()),
        first(initial.size(), InitialSlotValue(c, 0)),
        second(initial.size(), 0) {}

  void Step(const std::vector<float>& gradient, double lr, int64_t t, bool decays) {
    const std::vector<double> g(gradient.begin(), gradient.end());
    const double decay = decays ? config.weight_decay() : 0;
    if (config.algorithm() == OptimizerConfig::LAMB) return StepOfLamb(g, lr, t, decay, decays);
    double ratio = 1;
    if (config.algorithm() == OptimizerConfig::LARS && decays) {
      ratio = config.trust_coefficient() * Norm(w) / (Norm(g) + decay * Norm(w));
    }
    for (size_t i = 0; i < w.size(); ++i) StepOfWeight(i, g[i], lr, t, decay, ratio);
  }

  void StepOfWeight(size_t i, double g, double lr, int64_t t, double decay, double ratio) {
    const double gradient = g;
    if (config.algorithm() == OptimizerConfig::ADAMW) {
      w[i] -= lr * decay * w[i];
    } else {
      g += decay * w[i];
    }
    switch (config.algorithm()) {
      case OptimizerConfig::MOMENTUM:
      case OptimizerConfig::LARS:
        first[i] = config.momentum() * first[i] + ratio * g;
        w[i] -= lr * first[i];
        return;
      case OptimizerConfig::NESTEROV:
        first[i] = config.momentum() * first[i] + g;
        w[i] -= lr * (g + config.momentum() * first[i]);
        return;
      case OptimizerConfig::ADAGRAD:
        first[i] += g * g;
        w[i] -= lr * g / (std::sqrt(first[i]) + config.epsilon());
        return;
      case OptimizerConfig::RMSPROP:
        first[i] = config.rho() * first[i] + (1 - config.rho()) * g * g;
        w[i] -= lr * g / (std::sqrt(first[i]) + config.epsilon());
        return;
      case OptimizerConfig::ADAM:
      case OptimizerConfig::ADAMW:
        w[i] -= lr * AdamStep(i, g, t);
        return;
      case OptimizerConfig::SGD:
        w[i] -= lr * g;
        return;
      case OptimizerConfig::MEAN:
        w[i] = gradient;
        return;
      case OptimizerConfig::LAMB:
        FAIL() << "has a function of its own";
      case OptimizerConfig::ALGORITHM_UNSPECIFIED:
        RUBATO_NO_VALUE_OF(v1::OptimizerConfig_Algorithm_OptimizerConfig_Algorithm) : FAIL() << "is no algorithm";
    }
  }

  double AdamStep(size_t i, double g, int64_t t) {
    first[i] = config.beta1() * first[i] + (1 - config.beta1()) * g;
    second[i] = config.beta2() * second[i] + (1 - config.beta2()) * g * g;
    const double m_hat = first[i] / (1 - std::pow(config.beta1(), t));
    const double v_hat = second[i] / (1 - std::pow(config.beta2(), t));
    return m_hat / (std::sqrt(v_hat) + config.epsilon());
  }

  void StepOfLamb(const std::vector<double>& g, double lr, int64_t t, double decay, bool decays) {
    std::vector<double> step(w.size());
    for (size_t i = 0; i < w.size(); ++i) step[i] = AdamStep(i, g[i], t) + decay * w[i];
    const double ratio = decays ? Norm(w) / Norm(step) : 1;
    for (size_t i = 0; i < w.size(); ++i) w[i] -= lr * ratio * step[i];
  }

  OptimizerConfig config;
  std::vector<double> w, first, second;
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
  config.set_trust_coefficient(0.3);
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
    const auto size = static_cast<int64_t>(weights.size());
    if (rule.trust_ratio == TrustRatio::kNone) {
      ReduceAndApply(rule, &alone, 1, weights.data(), weights.data(), slots.data(), slots.data(), size);
    } else {
      ApplyWithTrustRatio(rule, &alone, 1, weights.data(), weights.data(), slots.data(), slots.data(), size);
    }
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
    Reference reference(config, initial);
    for (int t = 1; t <= steps; ++t) {
      const double learning_rate = 0.01 / (1 + 0.01 * t);
      std::vector<float> gradient(n);
      for (float& g : gradient) g = static_cast<float>(random.Normal());
      state.Step(MakeUpdateRule(config, learning_rate, t, decays), gradient);
      reference.Step(gradient, learning_rate, t, decays);
    }
    for (int i = 0; i < n; ++i) EXPECT_NEAR(state.weights[i], reference.w[i], 2e-5) << i;
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

TEST(OptimizerClosedFormTest, AStepOfLarsIsInProportionToTheWeightsNorm) {
  OptimizerConfig config;
  config.set_algorithm(OptimizerConfig::LARS);
  config.set_trust_coefficient(0.01);
  for (const float size : {1.0f, 1e-6f, 1e6f}) {
    State state(config, {3.0f, -4.0f});
    state.Step(MakeUpdateRule(config, 2.0, 1, true), {0.6f * size, 0.8f * size});
    EXPECT_NEAR(state.weights[0], 3 - 0.6 * 0.01 * 5 * 2, 1e-6);
    EXPECT_NEAR(state.weights[1], -4 - 0.8 * 0.01 * 5 * 2, 1e-6);
  }
}

TEST(OptimizerClosedFormTest, FirstStepOfLambIsAsLongAsTheWeightsTimesTheLearningRate) {
  OptimizerConfig config;
  config.set_algorithm(OptimizerConfig::LAMB);
  State state(config, {3.0f, -4.0f});
  state.Step(MakeUpdateRule(config, 0.1, 1, true), {5.0f, -0.01f});
  EXPECT_NEAR(state.weights[0], 3 - 0.1 * 5 / std::sqrt(2.0), 1e-5);
  EXPECT_NEAR(state.weights[1], -4 + 0.1 * 5 / std::sqrt(2.0), 1e-5);
}

TEST(OptimizerClosedFormTest, WhereANormIsZeroLarsIsMomentumAndLambIsAdam) {
  OptimizerConfig lars = Config(OptimizerConfig::LARS), momentum = Config(OptimizerConfig::MOMENTUM);
  OptimizerConfig lamb = Config(OptimizerConfig::LAMB), adam = Config(OptimizerConfig::ADAM);
  for (OptimizerConfig* config : {&lars, &momentum, &lamb, &adam}) config->set_weight_decay(0);
  for (const auto& [ratio, plain] : {std::pair(lars, momentum), std::pair(lamb, adam)}) {
    for (const std::vector<float>& initial : {std::vector<float>{0, 0}, std::vector<float>{1, 2}}) {
      State a(ratio, initial), b(plain, initial);
      const std::vector<float> gradient = initial[0] == 0 ? std::vector<float>{1, -2} : std::vector<float>{0, 0};
      a.Step(MakeUpdateRule(ratio, 0.1, 1, true), gradient);
      b.Step(MakeUpdateRule(plain, 0.1, 1, true), gradient);
      for (int i = 0; i < 2; ++i) EXPECT_FLOAT_EQ(a.weights[i], b.weights[i]);
    }
  }
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
