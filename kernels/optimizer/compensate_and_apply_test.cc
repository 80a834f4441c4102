// Every compensation against its paper's formula in double precision, over many pushes of workers that pull at
// different times, so that each push is of older weights than it is applied to.
#include "kernels/optimizer/compensate_and_apply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "kernels/optimizer/reduce_and_apply.h"

namespace rubato {
namespace {

using v1::CompensationConfig;
using v1::OptimizerConfig;

constexpr int kWorkers = 3;
constexpr int kLength = 300;  // A whole block and a part of one.

CompensationConfig DcAsgd(double lambda, bool adaptive) {
  CompensationConfig config;
  config.mutable_dc_asgd()->set_lambda(lambda);
  config.mutable_dc_asgd()->set_adaptive(adaptive);
  return config;
}

CompensationConfig GapAware() {
  CompensationConfig config;
  config.mutable_gap_aware();
  return config;
}

CompensationConfig DelayedNesterov(int64_t period) {
  CompensationConfig config;
  config.mutable_delayed_nesterov()->set_period(period);
  return config;
}

OptimizerConfig Optimizer(OptimizerConfig::Algorithm algorithm, double weight_decay = 0) {
  OptimizerConfig config;
  config.set_algorithm(algorithm);
  config.set_momentum(0.8);
  config.set_weight_decay(weight_decay);
  return config;
}

// Weights and slots as a server keeps them.
struct State {
  State(const OptimizerConfig& optimizer, const CompensationConfig& config, std::vector<float> initial)
      : optimizer(optimizer), compensation(config), weights(std::move(initial)) {
    const int count = NumSlots(optimizer.algorithm()) + NumSlots(*CompensationFormulaOf(config));
    for (int slot = 0; slot < count; ++slot) storage.emplace_back(weights.size(), 0.0f);
    for (std::vector<float>& slot : storage) slots.push_back(slot.data());
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void Push(Isa isa, const std::vector<float>& gradient, const float* pulled, double rate, bool in_place = true) {
    const auto n = static_cast<int64_t>(weights.size());
    const ByteSpan piece = BytesOf(gradient.data(), n);
    ++pushes;
    std::vector<float> next(weights.size());
    float* out = in_place ? weights.data() : next.data();
    CompensateAndApplyOn(isa, MakeUpdateRule(optimizer, rate, pushes, true), MakeCompensation(compensation, pushes),
                         {.pieces = {&piece, 1}}, pulled, weights.data(), out, slots.data(), slots.data(), n);
    if (!in_place) weights = next;
  }

  OptimizerConfig optimizer;
  CompensationConfig compensation;
  std::vector<float> weights;
  std::vector<std::vector<float>> storage;
  std::vector<float*> slots;
  int64_t pushes = 0;
};

// One weight as the papers have it.
struct Reference {
  double w = 0;
  // The optimizer's velocity, DC-ASGD's mean square, the sum of squared moves with its weights, delayed Nesterov's sum.
  double velocity = 0, mean_square = 0, moves = 0, move_weights = 0, sum = 0;
  int64_t pushes = 0;

  void Push(const OptimizerConfig& optimizer, const CompensationConfig& config, double g, double pulled, double rate) {
    ++pushes;
    const double before = w;
    if (config.has_dc_asgd()) {
      double lambda = config.dc_asgd().lambda();
      if (config.dc_asgd().adaptive()) {
        mean_square = 0.95 * mean_square + 0.05 * g * g;
        lambda /= std::sqrt(mean_square + 1e-7);
      }
      g += lambda * g * g * (w - pulled);
    }
    g += optimizer.weight_decay() * w;
    if (config.has_gap_aware() && move_weights > 0) {
      g /= 1 + std::abs(w - pulled) / std::sqrt(moves / move_weights);
    }
    if (config.has_delayed_nesterov()) {
      const double share = 1.0 / static_cast<double>(config.delayed_nesterov().period());
      sum += g;
      w -= rate * g * share;
      if (pushes % config.delayed_nesterov().period() != 0) return;
      velocity = optimizer.momentum() * velocity + sum * share;
      w -= rate * optimizer.momentum() * velocity;
      sum = 0;
      return;
    }
    if (optimizer.algorithm() == OptimizerConfig::MOMENTUM) g = velocity = optimizer.momentum() * velocity + g;
    w -= rate * g;
    moves = 0.999 * moves + 0.001 * (w - before) * (w - before);
    move_weights = 0.999 * move_weights + 0.001;
  }
};

struct Case {
  std::string name;
  OptimizerConfig optimizer;
  CompensationConfig compensation;
};

class CompensateAndApplyTest : public testing::TestWithParam<Case> {
 protected:
  // What each push brings: gradients of a quadratic with noise, at the weights that were pulled.
  static float Gradient(float pulled, Random& random) { return static_cast<float>(0.5 * pulled + random.Normal()); }
};

TEST_P(CompensateAndApplyTest, FollowsItsPaperOverPushesOfStaleGradients) {
  const Case& c = GetParam();
  Random random(7);
  std::vector<float> initial(kLength);
  for (float& w : initial) w = static_cast<float>(random.Normal());
  State state(c.optimizer, c.compensation, initial);
  std::vector<Reference> references(kLength);
  for (int i = 0; i < kLength; ++i) references[i].w = initial[i];
  std::vector<std::vector<float>> pulled(kWorkers, initial);
  std::vector<std::vector<double>> reference_pulled(kWorkers, {initial.begin(), initial.end()});
  std::vector<int> pulled_at(kWorkers, 0);
  int stalest = 0;
  for (int t = 0; t < 400; ++t) {
    // The last worker pushes once while each of the others does twice.
    const int order[] = {0, 1, 2, 0, 1};
    const int worker = order[t % 5];
    const double rate = 0.05 / (1 + 0.01 * t);
    std::vector<float> gradient(kLength);
    for (int i = 0; i < kLength; ++i) gradient[i] = Gradient(pulled[worker][i], random);
    state.Push(ReduceAndApplyIsa(), gradient, pulled[worker].data(), rate);
    for (int i = 0; i < kLength; ++i) {
      references[i].Push(c.optimizer, c.compensation, gradient[i], reference_pulled[worker][i], rate);
      reference_pulled[worker][i] = references[i].w;
    }
    stalest = std::max(stalest, t - pulled_at[worker]);
    pulled[worker] = state.weights;
    pulled_at[worker] = t + 1;
  }
  EXPECT_EQ(stalest, 4);
  for (int i = 0; i < kLength; ++i) ASSERT_NEAR(state.weights[i], references[i].w, 2e-5) << i;
}

TEST_P(CompensateAndApplyTest, HasTheSameBitsOnEveryProcessorAndInPlaceOrNot) {
  const Case& c = GetParam();
  Random random(9);
  std::vector<float> initial(kLength), pulled(kLength), gradient(kLength);
  for (float& w : initial) w = static_cast<float>(random.Normal());
  for (float& w : pulled) w = static_cast<float>(random.Normal());
  State expected(c.optimizer, c.compensation, initial);
  std::vector<std::vector<float>> gradients;
  for (int t = 0; t < 7; ++t) {
    for (float& g : gradient) g = static_cast<float>(random.Normal());
    gradients.push_back(gradient);
    expected.Push(Isa::kBaseline, gradient, pulled.data(), 0.05);
  }
  for (Isa isa : kAllIsas) {
    if (!Supports(isa)) continue;
    for (bool in_place : {true, false}) {
      State state(c.optimizer, c.compensation, initial);
      for (const std::vector<float>& g : gradients) state.Push(isa, g, pulled.data(), 0.05, in_place);
      EXPECT_EQ(state.weights, expected.weights) << IsaName(isa) << ", in place " << in_place;
      EXPECT_EQ(state.storage, expected.storage) << IsaName(isa) << ", in place " << in_place;
    }
  }
}

TEST_P(CompensateAndApplyTest, WithoutPulledWeightsThereIsNoGap) {
  const Case& c = GetParam();
  std::vector<float> initial(kLength, 0.5f), gradient(kLength, -2.0f);
  State none(c.optimizer, c.compensation, initial), same(c.optimizer, c.compensation, initial);
  for (int t = 0; t < 3; ++t) {
    none.Push(ReduceAndApplyIsa(), gradient, nullptr, 0.1);
    const std::vector<float> now = same.weights;
    same.Push(ReduceAndApplyIsa(), gradient, now.data(), 0.1);
  }
  EXPECT_EQ(none.weights, same.weights);
}

INSTANTIATE_TEST_SUITE_P(
    All, CompensateAndApplyTest,
    testing::Values(Case{"dc_asgd_c", Optimizer(OptimizerConfig::SGD), DcAsgd(0.04, false)},
                    Case{"dc_asgd_c_strong", Optimizer(OptimizerConfig::SGD, 0.01), DcAsgd(0.5, false)},
                    Case{"dc_asgd_c_momentum", Optimizer(OptimizerConfig::MOMENTUM, 0.01), DcAsgd(0.04, false)},
                    Case{"dc_asgd_a", Optimizer(OptimizerConfig::SGD, 0.01), DcAsgd(2, true)},
                    Case{"dc_asgd_a_momentum", Optimizer(OptimizerConfig::MOMENTUM), DcAsgd(2, true)},
                    Case{"gap_aware", Optimizer(OptimizerConfig::SGD, 0.05), GapAware()},
                    Case{"gap_aware_momentum", Optimizer(OptimizerConfig::MOMENTUM, 0.05), GapAware()},
                    Case{"delayed_nesterov", Optimizer(OptimizerConfig::NESTEROV, 0.01), DelayedNesterov(3)},
                    Case{"delayed_nesterov_4", Optimizer(OptimizerConfig::NESTEROV), DelayedNesterov(4)}),
    [](const auto& info) { return info.param.name; });

TEST(CompensationTest, DelayedNesterovWithAPeriodOfOneIsNesterov) {
  const OptimizerConfig optimizer = Optimizer(OptimizerConfig::NESTEROV);
  State delayed(optimizer, DelayedNesterov(1), {1.0f});
  float weight = 1, velocity = 0;
  float* slots[] = {&velocity};
  Random random(3);
  for (int t = 1; t <= 50; ++t) {
    const std::vector<float> gradient = {static_cast<float>(random.Normal())};
    delayed.Push(Isa::kBaseline, gradient, nullptr, 0.1);
    const ByteSpan piece = BytesOf(gradient.data(), 1);
    const EncodedGradient alone = {.pieces = {&piece, 1}};
    ReduceAndApply(MakeUpdateRule(optimizer, 0.1, t, true), &alone, 1, &weight, &weight, slots, slots, 1);
    ASSERT_NEAR(delayed.weights[0], weight, 1e-5);
  }
}

TEST(CompensationTest, AGapOfTwiceTheUsualMoveLeavesAThirdOfTheGradient) {
  State state(Optimizer(OptimizerConfig::SGD), GapAware(), {1.0f});
  const float at_one = 1.0f;
  state.Push(Isa::kBaseline, {1.0f}, &at_one, 0.1);  // Moves by 0.1.
  const float pulled = state.weights[0] + 0.2f;
  state.Push(Isa::kBaseline, {1.0f}, &pulled, 0.1);
  EXPECT_NEAR(state.weights[0], 0.9 - 0.1 / 3, 1e-6);
}

TEST(CompensationTest, OnlyThoseThatCompareWeightsReadThem) {
  for (CompensationFormula formula :
       {CompensationFormula::kDelay, CompensationFormula::kAdaptiveDelay, CompensationFormula::kGap}) {
    EXPECT_TRUE(ReadsPulledWeights(formula));
  }
  EXPECT_FALSE(ReadsPulledWeights(CompensationFormula::kDelayedNesterov));
  CompensationConfig config;
  EXPECT_FALSE(CompensationFormulaOf(config).has_value());
  config.mutable_staleness_aware();
  EXPECT_FALSE(CompensationFormulaOf(config).has_value());
  config.mutable_ringmaster();
  EXPECT_FALSE(CompensationFormulaOf(config).has_value());
}

}  // namespace
}  // namespace rubato
