// The same bits for whatever does not change the numbers. The formulas are in optimizer_reference_test.
#include "kernels/optimizer/trust_ratio.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/byte_span.h"
#include "common/random.h"
#include "kernels/optimizer/isa.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato {
namespace {

std::vector<float> Normals(int64_t n, uint64_t stream) {
  Random random(5, stream);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.Normal());
  return values;
}

UpdateRule RuleOf(v1::OptimizerConfig::Algorithm algorithm) {
  v1::OptimizerConfig config;
  config.set_algorithm(algorithm);
  config.set_weight_decay(0.01);
  return MakeUpdateRule(config, 0.05, 3, true);
}

// Two contributions, weights and slots of n elements.
struct Problem {
  explicit Problem(int64_t n) : size(n), weights(Normals(n, 1)), slot0(Normals(n, 2)), slot1(Normals(n, 3)) {
    for (float& value : slot1) value *= value;
    for (uint64_t k = 0; k < 2; ++k) gradients.push_back(Normals(n, 10 + k));
  }

  // Gradients come in pieces of so many elements.
  void Apply(Isa isa, const UpdateRule& rule, int64_t piece_elements) {
    std::vector<ByteSpan> pieces[2];
    std::vector<EncodedGradient> contributions;
    for (int k = 0; k < 2; ++k) {
      for (int64_t begin = 0; begin < size; begin += piece_elements) {
        pieces[k].push_back(BytesOf(gradients[k].data() + begin, std::min(piece_elements, size - begin)));
      }
      contributions.push_back({.pieces = pieces[k], .weight = k == 0 ? 0.25f : 0.75f});
    }
    float* slots[] = {slot0.data(), slot1.data()};
    ApplyWithTrustRatioOn(isa, rule, contributions.data(), 2, weights.data(), weights.data(), slots, slots, size);
  }

  void ExpectSame(const Problem& other) const {
    EXPECT_EQ(weights, other.weights);
    EXPECT_EQ(slot0, other.slot0);
    EXPECT_EQ(slot1, other.slot1);
  }

  int64_t size;
  std::vector<float> weights, slot0, slot1;
  std::vector<std::vector<float>> gradients;
};

class TrustRatioTest : public testing::TestWithParam<v1::OptimizerConfig::Algorithm> {};

TEST_P(TrustRatioTest, HasTheSameBitsOnEveryInstructionSet) {
  for (const int64_t n : {1, 255, 256, 4097}) {
    Problem expected(n);
    expected.Apply(Isa::kBaseline, RuleOf(GetParam()), n);
    for (Isa isa : kAllIsas) {
      if (!Supports(isa)) continue;
      SCOPED_TRACE(IsaName(isa));
      Problem problem(n);
      problem.Apply(isa, RuleOf(GetParam()), n);
      problem.ExpectSame(expected);
    }
  }
}

TEST_P(TrustRatioTest, HasTheSameBitsHoweverMessagesAreCut) {
  Problem whole(1000), cut(1000);
  whole.Apply(BestIsa(), RuleOf(GetParam()), 1000);
  cut.Apply(BestIsa(), RuleOf(GetParam()), 37);
  cut.ExpectSame(whole);
}

TEST_P(TrustRatioTest, LeavesWhatItReadsAndWritesTheSameElsewhere) {
  const UpdateRule rule = RuleOf(GetParam());
  Problem in_place(700);
  const Problem read = in_place;
  Problem written(700);
  const ByteSpan piece = BytesOf(read.gradients[0].data(), 700);
  const EncodedGradient push = {.pieces = {&piece, 1}};
  const float* const slots_in[] = {read.slot0.data(), read.slot1.data()};
  float* const slots_out[] = {written.slot0.data(), written.slot1.data()};
  ApplyWithTrustRatio(rule, &push, 1, read.weights.data(), written.weights.data(), slots_in, slots_out, 700);
  float* slots[] = {in_place.slot0.data(), in_place.slot1.data()};
  ApplyWithTrustRatio(rule, &push, 1, in_place.weights.data(), in_place.weights.data(), slots, slots, 700);
  written.ExpectSame(in_place);
  read.ExpectSame(Problem(700));
  EXPECT_NE(written.weights, read.weights);
}

TEST_P(TrustRatioTest, NoContributionIsAGradientOfZero) {
  Problem none(300), zero(300);
  for (std::vector<float>& gradient : zero.gradients) gradient.assign(300, 0.0f);
  zero.Apply(BestIsa(), RuleOf(GetParam()), 300);
  float* slots[] = {none.slot0.data(), none.slot1.data()};
  ApplyWithTrustRatio(RuleOf(GetParam()), nullptr, 0, none.weights.data(), none.weights.data(), slots, slots, 300);
  none.ExpectSame(zero);
}

INSTANTIATE_TEST_SUITE_P(All, TrustRatioTest, testing::Values(v1::OptimizerConfig::LARS, v1::OptimizerConfig::LAMB),
                         [](const auto& info) { return v1::OptimizerConfig::Algorithm_Name(info.param); });

}  // namespace
}  // namespace rubato
