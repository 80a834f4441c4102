#include "kernels/optimizer/reduce_and_apply.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "common/optimizer_traits.h"
#include "common/random.h"
#include "kernels/codec/codec.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato {
namespace {

using v1::OptimizerConfig;

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

// A contribution in one piece, which it owns.
struct Whole {
  Whole(const void* data, int64_t n, float weight)
      : piece(static_cast<const uint8_t*>(data), sizeof(float) * n), gradient{{&piece, 1}, weight} {}
  Whole(const Whole&) = delete;
  Whole& operator=(const Whole&) = delete;

  ByteSpan piece;
  EncodedGradient gradient;
};

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
    std::vector<ByteSpan> pieces;
    for (int k = 0; k < 3; ++k) pieces.push_back(BytesOf(gradients[k].data() + begin, end - begin));
    std::vector<EncodedGradient> spans;
    for (int k = 0; k < 3; ++k) spans.push_back({{&pieces[k], 1}, shares[k]});
    float* slots[] = {slot0.data() + begin, slot1.data() + begin};
    ReduceAndApplyOn(isa, rule, spans.data(), 3, weights.data() + begin, weights.data() + begin, slots, slots,
                     end - begin);
  }

  int64_t size;
  std::vector<float> weights, slot0, slot1;
  std::vector<std::vector<float>> gradients;
};

uint32_t Crc32(const std::vector<float>& values) {
  const size_t bytes = values.size() * sizeof(float);
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(values.data()), static_cast<uInt>(bytes)));
}

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
  Problem baseline(5003);
  baseline.Apply(Isa::kBaseline, RuleOf(GetParam()), 0, baseline.size);
  for (Isa isa : kAllIsas) {
    if (!Supports(isa)) continue;
    SCOPED_TRACE(IsaName(isa));
    Problem other(5003);
    other.Apply(isa, RuleOf(GetParam()), 0, other.size);
    ExpectSameBits(baseline, other);
  }
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
  const Whole gradient(in_place.gradients[0].data(), in_place.size, 1.0f);
  float* slots[] = {in_place.slot0.data(), in_place.slot1.data()};
  ReduceAndApply(rule, &gradient.gradient, 1, in_place.weights.data(), in_place.weights.data(), slots, slots,
                 in_place.size);

  const std::vector<float> before = copied.weights;
  std::vector<float> out(copied.size, -1.0f);
  float* copied_slots[] = {copied.slot0.data(), copied.slot1.data()};
  ReduceAndApply(rule, &gradient.gradient, 1, copied.weights.data(), out.data(), copied_slots, copied_slots,
                 copied.size);
  EXPECT_TRUE(SameBits(copied.weights, before));
  EXPECT_TRUE(SameBits(out, in_place.weights));
  EXPECT_TRUE(SameBits(copied.slot0, in_place.slot0));
}

TEST_P(ReduceAndApplyTest, WritesSlotsToOtherBuffersWithoutTouchingThoseItReads) {
  for (const bool only_first : {false, true}) {
    Problem in_place(3001), apart(3001);
    const UpdateRule rule = RuleOf(GetParam());
    const Whole gradient(in_place.gradients[0].data(), in_place.size, 1.0f);
    float* slots[] = {in_place.slot0.data(), in_place.slot1.data()};
    ReduceAndApply(rule, &gradient.gradient, 1, in_place.weights.data(), in_place.weights.data(), slots, slots,
                   in_place.size);

    const std::vector<float> before0 = apart.slot0, before1 = apart.slot1;
    std::vector<float> out0(apart.size, -1.0f), out1(apart.size, -1.0f);
    const float* in[] = {apart.slot0.data(), apart.slot1.data()};
    float* out[] = {out0.data(), only_first ? apart.slot1.data() : out1.data()};
    uint32_t crc32s[] = {99, 99};
    ReduceAndApply(rule, &gradient.gradient, 1, apart.weights.data(), apart.weights.data(), in, out, apart.size,
                   crc32s);
    EXPECT_TRUE(SameBits(apart.weights, in_place.weights));
    EXPECT_TRUE(SameBits(apart.slot0, before0));
    if (NumSlots(rule.formula) > 0) {
      EXPECT_TRUE(SameBits(out0, in_place.slot0));
      EXPECT_EQ(crc32s[0], Crc32(before0));
    }
    if (NumSlots(rule.formula) > 1) {
      EXPECT_TRUE(SameBits(only_first ? apart.slot1 : out1, in_place.slot1));
      EXPECT_EQ(crc32s[1], only_first ? 0u : Crc32(before1));
    }
    if (!only_first) {
      EXPECT_TRUE(SameBits(apart.slot1, before1));
    }
  }
}

TEST_P(ReduceAndApplyTest, TakesGradientsAtAnyAddress) {
  Problem aligned(2050), unaligned(2050);
  const UpdateRule rule = RuleOf(GetParam());
  const size_t bytes = sizeof(float) * aligned.size;
  for (size_t shift = 1; shift < 4; ++shift) {
    std::vector<char> encoded(bytes + shift);
    std::memcpy(encoded.data() + shift, aligned.gradients[0].data(), bytes);
    const Whole a(aligned.gradients[0].data(), aligned.size, 1.0f), b(encoded.data() + shift, aligned.size, 1.0f);
    float* slots_a[] = {aligned.slot0.data(), aligned.slot1.data()};
    float* slots_b[] = {unaligned.slot0.data(), unaligned.slot1.data()};
    ReduceAndApply(rule, &a.gradient, 1, aligned.weights.data(), aligned.weights.data(), slots_a, slots_a,
                   aligned.size);
    ReduceAndApply(rule, &b.gradient, 1, unaligned.weights.data(), unaligned.weights.data(), slots_b, slots_b,
                   unaligned.size);
    ExpectSameBits(aligned, unaligned);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReduceAndApplyTest, testing::ValuesIn(AllAlgorithms()),
                         [](const auto& info) { return OptimizerConfig::Algorithm_Name(info.param); });

TEST(ReductionTest, SumsInTheGivenOrder) {
  // In this order the small term is lost; in the other it is not.
  const float big = 1.0f, minus = -1.0f, small = 1e-9f;
  const Whole plus_one(&big, 1, 1.0f), minus_one(&minus, 1, 1.0f), tiny(&small, 1, 1.0f);
  const EncodedGradient lost[] = {plus_one.gradient, tiny.gradient, minus_one.gradient};
  const EncodedGradient kept[] = {plus_one.gradient, minus_one.gradient, tiny.gradient};
  UpdateRule rule;
  rule.learning_rate = 1;
  float w = 0;
  ReduceAndApply(rule, lost, 3, &w, &w, nullptr, nullptr, 1);
  EXPECT_EQ(w, 0.0f);
  ReduceAndApply(rule, kept, 3, &w, &w, nullptr, nullptr, 1);
  EXPECT_EQ(w, -1e-9f);
}

TEST(ReductionTest, ManyContributionsAreSummedInOrderToo) {
  // However they are grouped into loops: 1 to 11 of them, against a sum of one after another.
  constexpr int64_t kSize = 700;
  UpdateRule rule;
  rule.learning_rate = 1;
  std::vector<std::vector<float>> data;
  std::vector<std::unique_ptr<Whole>> owners;
  std::vector<EncodedGradient> spans;
  std::vector<float> expected(kSize, 0.0f);
  for (int count = 1; count <= 11; ++count) {
    const float weight = 1.0f / static_cast<float>(count);
    data.push_back(Normals(kSize, 40 + count));
    owners.push_back(std::make_unique<Whole>(data.back().data(), kSize, weight));
    spans.push_back(owners.back()->gradient);
    for (int64_t i = 0; i < kSize; ++i) {
      const float product = weight * data.back()[i];
      expected[i] = count == 1 ? product : expected[i] + product;
    }
    std::vector<float> w(kSize, 0.0f), negated(kSize);
    ReduceAndApply(rule, spans.data(), count, w.data(), w.data(), nullptr, nullptr, kSize);
    for (int64_t i = 0; i < kSize; ++i) negated[i] = 0.0f - expected[i];
    EXPECT_TRUE(SameBits(w, negated)) << count;
  }
}

TEST(ReductionTest, WeightsTheContributions) {
  const float a = 4.0f, b = 8.0f;
  const Whole first(&a, 1, 0.25f), second(&b, 1, 0.75f);
  const EncodedGradient mean[] = {first.gradient, second.gradient};
  UpdateRule rule;
  rule.learning_rate = 1;
  float w = 0;
  ReduceAndApply(rule, mean, 2, &w, &w, nullptr, nullptr, 1);
  EXPECT_EQ(w, -7.0f);
}

TEST(ReductionTest, NoContributionIsAZeroGradient) {
  UpdateRule rule = RuleOf(OptimizerConfig::MOMENTUM, 0);
  std::vector<float> w(3000, 1.0f), v(3000, 2.0f);
  float* slots[] = {v.data()};
  ReduceAndApply(rule, nullptr, 0, w.data(), w.data(), slots, slots, 3000);
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_EQ(v[i], 1.8f);
    EXPECT_EQ(w[i], 1.0f - 0.05f * 1.8f);
  }
}

TEST(ReductionTest, NothingToDoForNoElements) {
  const EncodedGradient span;
  UpdateRule rule;
  rule.learning_rate = 0.5f;
  float weight = 3, slot = 4;
  float* const slots[] = {&slot, &slot};
  ReduceAndApply(rule, &span, 1, &weight, &weight, slots, slots, 0);
  EXPECT_EQ(weight, 3);
  EXPECT_EQ(slot, 4);
  ReduceAndApply(rule, &span, 1, nullptr, nullptr, nullptr, nullptr, 0);
}

// A message of three contributions' sizes, cut in two at each of some places and in many small parts.
TEST(PiecesTest, CutsAnywhereGiveTheSameBits) {
  constexpr int64_t kSize = 1300;
  const std::vector<float> gradient = Normals(kSize, 7), initial = Normals(kSize, 8);
  const Whole whole(gradient.data(), kSize, 0.5f);
  UpdateRule rule;
  rule.learning_rate = 0.1f;
  std::vector<float> expected = initial;
  ReduceAndApply(rule, &whole.gradient, 1, expected.data(), expected.data(), nullptr, nullptr, kSize);

  const uint8_t* bytes = BytesOf(gradient.data(), kSize).data();
  for (int64_t border : {0, 256, 512, 1024, 1280, 1300}) {
    for (int64_t cut = 4 * border - 9; cut <= 4 * border + 9; ++cut) {
      if (cut < 0 || cut > 4 * kSize) continue;
      // The second part elsewhere, so that reading on past the first one is noticed.
      const std::vector<uint8_t> first(bytes, bytes + cut), second(bytes + cut, bytes + 4 * kSize);
      const ByteSpan pieces[] = {first, ByteSpan(), second};
      const EncodedGradient span = {pieces, 0.5f};
      std::vector<float> w = initial;
      ReduceAndApply(rule, &span, 1, w.data(), w.data(), nullptr, nullptr, kSize);
      EXPECT_TRUE(SameBits(w, expected)) << cut;
    }
  }
}

TEST(PiecesTest, ElementsMayLieInManyPieces) {
  constexpr int64_t kSize = 600;
  UpdateRule rule;
  rule.learning_rate = 0.1f;
  for (int64_t length : {1, 2, 3, 5, 7, 1021, 1023, 1025}) {
    std::vector<std::vector<float>> gradients;
    std::vector<std::vector<std::vector<uint8_t>>> parts(6);
    std::vector<std::vector<ByteSpan>> pieces(6);
    std::vector<std::unique_ptr<Whole>> owners;
    std::vector<EncodedGradient> whole, cut;
    for (int k = 0; k < 6; ++k) {
      gradients.push_back(Normals(kSize, k));
      const uint8_t* bytes = BytesOf(gradients[k].data(), kSize).data();
      for (int64_t at = 0; at < 4 * kSize; at += length) {
        parts[k].emplace_back(bytes + at, bytes + std::min(at + length, 4 * kSize));
      }
      for (const std::vector<uint8_t>& part : parts[k]) pieces[k].push_back(part);
      owners.push_back(std::make_unique<Whole>(gradients[k].data(), kSize, 0.25f));
      whole.push_back(owners[k]->gradient);
      cut.push_back({pieces[k], 0.25f});
    }
    std::vector<float> expected(kSize, 1.0f), w(kSize, 1.0f);
    ReduceAndApply(rule, whole.data(), 6, expected.data(), expected.data(), nullptr, nullptr, kSize);
    ReduceAndApply(rule, cut.data(), 6, w.data(), w.data(), nullptr, nullptr, kSize);
    EXPECT_TRUE(SameBits(w, expected)) << length;
  }
}

class EncodedTest : public testing::TestWithParam<v1::Codec> {};

TEST_P(EncodedTest, ContributionsAreDecodedInTheSamePass) {
  for (int64_t size : {1, 255, 256, 700, 2049}) {
    const CodecSpec spec = {GetParam(), 0.1};
    std::vector<float> values = Normals(size, 3), plain = Normals(size, 4), decoded(size), residual(size, 0.0f);
    // Unaligned, as in a message.
    std::vector<uint8_t> encoded(MaxEncodedBytes(spec, size) + 1);
    const int64_t bytes = Encode(spec, values.data(), size, residual.data(), 1, 2, encoded.data() + 1);
    Decode(spec.codec, encoded.data() + 1, bytes, size, decoded.data());

    const Whole other(plain.data(), size, 0.25f), reference(decoded.data(), size, 0.75f);
    const ByteSpan piece(encoded.data() + 1, bytes);
    const EncodedGradient expected[] = {reference.gradient, other.gradient},
                          mixed[] = {{{&piece, 1}, 0.75f, GetParam()}, other.gradient};
    std::vector<float> a(size, 1.0f), b(size, 1.0f);
    UpdateRule rule;
    rule.learning_rate = 0.3f;
    ReduceAndApply(rule, expected, 2, a.data(), a.data(), nullptr, nullptr, size);
    ReduceAndApply(rule, mixed, 2, b.data(), b.data(), nullptr, nullptr, size);
    EXPECT_TRUE(SameBits(a, b)) << size;
  }
}

std::string CodecName(const testing::TestParamInfo<v1::Codec>& info) { return v1::Codec_Name(info.param); }
INSTANTIATE_TEST_SUITE_P(All, EncodedTest, testing::ValuesIn(AllCodecs()), CodecName);
INSTANTIATE_TEST_SUITE_P(Unnamed, EncodedTest, testing::Values(v1::CODEC_UNSPECIFIED), CodecName);

}  // namespace
}  // namespace rubato
