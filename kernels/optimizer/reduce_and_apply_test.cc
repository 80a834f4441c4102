#include "kernels/optimizer/reduce_and_apply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/random.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato {
namespace {

using v1::OptimizerConfig;

constexpr OptimizerConfig::Algorithm kAlgorithms[] = {
    OptimizerConfig::SGD,     OptimizerConfig::MOMENTUM, OptimizerConfig::NESTEROV, OptimizerConfig::ADAGRAD,
    OptimizerConfig::RMSPROP, OptimizerConfig::ADAM,     OptimizerConfig::ADAMW};

std::vector<float> Normals(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.Normal());
  return values;
}

UpdateRule RuleOf(OptimizerConfig::Algorithm algorithm, double weight_decay = 0.01) {
  OptimizerConfig config;
  config.set_algorithm(algorithm);
  config.set_weight_decay(weight_decay);
  return MakeUpdateRule(config, 0.05, 3, true);
}

// Three contributions, weights and two slots, all of n elements.
struct Problem {
  explicit Problem(int64_t n) : size(n), weights(Normals(n, 1)), slot0(Normals(n, 2)), slot1(Normals(n, 3)) {
    for (float& value : slot0) value *= value;
    for (float& value : slot1) value *= value;
    for (uint64_t k = 0; k < 3; ++k) gradients.push_back(Normals(n, 10 + k));
  }

  // Elements [begin, end) of one update, in place.
  void Apply(Isa isa, const UpdateRule& rule, int64_t begin, int64_t end) {
    const float shares[] = {0.25f, 0.45f, 0.3f};
    std::vector<GradientSpan> spans;
    for (int k = 0; k < 3; ++k) spans.push_back({gradients[k].data() + begin, shares[k]});
    float* slots[] = {slot0.data() + begin, slot1.data() + begin};
    ReduceAndApplyOn(isa, rule, spans.data(), 3, weights.data() + begin, weights.data() + begin, slots, end - begin);
  }

  int64_t size;
  std::vector<float> weights, slot0, slot1;
  std::vector<std::vector<float>> gradients;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void ExpectSameBits(const Problem& a, const Problem& b) {
  EXPECT_TRUE(SameBits(a.weights, b.weights));
  EXPECT_TRUE(SameBits(a.slot0, b.slot0));
  EXPECT_TRUE(SameBits(a.slot1, b.slot1));
}

class ReduceAndApplyTest : public testing::TestWithParam<OptimizerConfig::Algorithm> {};

TEST_P(ReduceAndApplyTest, EveryInstructionSetGivesTheSameBits) {
  if (!Supports(Isa::kAvx2)) GTEST_SKIP() << "this processor has no AVX2";
  Problem baseline(5003), avx2(5003);
  baseline.Apply(Isa::kBaseline, RuleOf(GetParam()), 0, baseline.size);
  avx2.Apply(Isa::kAvx2, RuleOf(GetParam()), 0, avx2.size);
  ExpectSameBits(baseline, avx2);
}

TEST_P(ReduceAndApplyTest, AnySplitGivesTheSameBits) {
  Problem whole(4099);
  whole.Apply(BestIsa(), RuleOf(GetParam()), 0, whole.size);
  for (int64_t piece : {1, 7, 1000, 1024, 4098}) {
    Problem split(4099);
    for (int64_t begin = 0; begin < split.size; begin += piece) {
      split.Apply(BestIsa(), RuleOf(GetParam()), begin, std::min(split.size, begin + piece));
    }
    ExpectSameBits(whole, split);
  }
}

TEST_P(ReduceAndApplyTest, WritesToAnotherBufferWithoutTouchingItsInput) {
  Problem in_place(3001), copied(3001);
  const UpdateRule rule = RuleOf(GetParam());
  const GradientSpan span = {in_place.gradients[0].data(), 1.0f};
  float* slots[] = {in_place.slot0.data(), in_place.slot1.data()};
  ReduceAndApply(rule, &span, 1, in_place.weights.data(), in_place.weights.data(), slots, in_place.size);

  const std::vector<float> before = copied.weights;
  std::vector<float> out(copied.size, -1.0f);
  float* copied_slots[] = {copied.slot0.data(), copied.slot1.data()};
  ReduceAndApply(rule, &span, 1, copied.weights.data(), out.data(), copied_slots, copied.size);
  EXPECT_TRUE(SameBits(copied.weights, before));
  EXPECT_TRUE(SameBits(out, in_place.weights));
  EXPECT_TRUE(SameBits(copied.slot0, in_place.slot0));
}

TEST_P(ReduceAndApplyTest, TakesGradientsAtAnyAddress) {
  Problem aligned(2050), unaligned(2050);
  const UpdateRule rule = RuleOf(GetParam());
  const size_t bytes = sizeof(float) * aligned.size;
  for (size_t shift = 1; shift < 4; ++shift) {
    std::vector<char> message(bytes + shift);
    std::memcpy(message.data() + shift, aligned.gradients[0].data(), bytes);
    const GradientSpan a = {aligned.gradients[0].data(), 1.0f}, b = {message.data() + shift, 1.0f};
    float* slots_a[] = {aligned.slot0.data(), aligned.slot1.data()};
    float* slots_b[] = {unaligned.slot0.data(), unaligned.slot1.data()};
    ReduceAndApply(rule, &a, 1, aligned.weights.data(), aligned.weights.data(), slots_a, aligned.size);
    ReduceAndApply(rule, &b, 1, unaligned.weights.data(), unaligned.weights.data(), slots_b, unaligned.size);
    ExpectSameBits(aligned, unaligned);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReduceAndApplyTest, testing::ValuesIn(kAlgorithms),
                         [](const auto& info) { return OptimizerConfig::Algorithm_Name(info.param); });

TEST(ReductionTest, SumsInTheGivenOrder) {
  // In this order the small term is lost; in the other it is not.
  const float big = 1.0f, minus = -1.0f, small = 1e-9f;
  const GradientSpan lost[] = {{&big, 1.0f}, {&small, 1.0f}, {&minus, 1.0f}};
  const GradientSpan kept[] = {{&big, 1.0f}, {&minus, 1.0f}, {&small, 1.0f}};
  UpdateRule rule;
  rule.learning_rate = 1;
  float w = 0;
  ReduceAndApply(rule, lost, 3, &w, &w, nullptr, 1);
  EXPECT_EQ(w, 0.0f);
  ReduceAndApply(rule, kept, 3, &w, &w, nullptr, 1);
  EXPECT_EQ(w, -1e-9f);
}

TEST(ReductionTest, WeightsTheContributions) {
  const float a = 4.0f, b = 8.0f;
  const GradientSpan mean[] = {{&a, 0.25f}, {&b, 0.75f}};
  UpdateRule rule;
  rule.learning_rate = 1;
  float w = 0;
  ReduceAndApply(rule, mean, 2, &w, &w, nullptr, 1);
  EXPECT_EQ(w, -7.0f);
}

TEST(ReductionTest, NoContributionIsAZeroGradient) {
  UpdateRule rule = RuleOf(OptimizerConfig::MOMENTUM, 0);
  std::vector<float> w(3000, 1.0f), v(3000, 2.0f);
  float* slots[] = {v.data()};
  ReduceAndApply(rule, nullptr, 0, w.data(), w.data(), slots, 3000);
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_EQ(v[i], 1.8f);
    EXPECT_EQ(w[i], 1.0f - 0.05f * 1.8f);
  }
}

TEST(ReductionTest, NothingToDoForNoElements) {
  const GradientSpan span = {nullptr, 1.0f};
  ReduceAndApply(UpdateRule(), &span, 1, nullptr, nullptr, nullptr, 0);
}

}  // namespace
}  // namespace rubato
