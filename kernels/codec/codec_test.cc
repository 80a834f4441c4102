#include "kernels/codec/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/proto_enum.h"
#include "common/random.h"

namespace rubato {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Normals(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.Normal());
  return values;
}

// Encodes, with `residual` if the codec has one, and checks the length that was promised.
std::vector<uint8_t> Encoded(const CodecSpec& spec, const std::vector<float>& values, std::vector<float>* residual,
                             uint64_t stream = 0) {
  const int64_t n = static_cast<int64_t>(values.size());
  std::vector<uint8_t> encoded(MaxEncodedBytes(spec, n));
  const int64_t bytes =
      Encode(spec, values.data(), n, residual == nullptr ? nullptr : residual->data(), 7, stream, encoded.data());
  EXPECT_EQ(bytes, static_cast<int64_t>(encoded.size()));
  EXPECT_TRUE(CheckEncoded(spec.codec, encoded.data(), bytes, n).ok());
  return encoded;
}

std::vector<float> Decoded(v1::Codec codec, const std::vector<uint8_t>& encoded, int64_t n) {
  std::vector<float> values(n, -77.0f);
  Decode(codec, encoded.data(), static_cast<int64_t>(encoded.size()), n, values.data());
  return values;
}

bool Finite(v1::Codec codec, const std::vector<uint8_t>& encoded, int64_t n) {
  return AllFiniteEncoded(codec, encoded.data(), static_cast<int64_t>(encoded.size()), n);
}

void Append(std::vector<uint8_t>& bytes, float value) {
  const uint8_t* begin = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), begin, begin + 4);
}

class CodecTest : public testing::TestWithParam<v1::Codec> {
 protected:
  CodecSpec spec_ = {GetParam(), 0.05};
};

TEST_P(CodecTest, NothingTakesNextToNothing) {
  std::vector<float> residual;
  const std::vector<uint8_t> encoded = Encoded(spec_, {}, &residual);
  EXPECT_EQ(encoded.size(), spec_.codec == v1::TOP_K ? 4u : 0u);
  EXPECT_TRUE(Finite(spec_.codec, encoded, 0));
  EXPECT_TRUE(Decoded(spec_.codec, encoded, 0).empty());
}

TEST_P(CodecTest, ErrorsAreBounded) {
  for (int64_t n : {1, 7, 255, 256, 257, 1000, 5000}) {
    std::vector<float> values = Normals(n, n), residual(n, 0.0f);
    const std::vector<float> back = Decoded(spec_.codec, Encoded(spec_, values, &residual), n);
    float largest = 0;
    for (float value : values) largest = std::max(largest, std::abs(value));
    for (int64_t i = 0; i < n; ++i) {
      const float error = std::abs(back[i] - values[i]), size = std::abs(values[i]);
      switch (spec_.codec) {
        case v1::NONE:
          EXPECT_EQ(error, 0);
          break;
        case v1::BF16:
          EXPECT_LE(error, size * 0x1p-8f);
          break;
        case v1::FP16:
          EXPECT_LE(error, std::max(size * 0x1p-11f, 0x1p-25f));
          break;
        case v1::INT8:
          EXPECT_LE(error, largest / 127 * 1.0001f);
          break;
        case v1::TOP_K:
        case v1::ONE_BIT:
          EXPECT_LE(error, largest);
          break;
        case v1::CODEC_UNSPECIFIED:
          RUBATO_NO_VALUE_OF(v1::Codec) : FAIL() << "is no codec";
      }
    }
  }
}

TEST_P(CodecTest, WhatIsNotLossyComesBackAsItWas) {
  std::vector<float> values = Normals(1000, 4), residual(1000, 0.0f);
  const std::vector<float> back = Decoded(spec_.codec, Encoded(spec_, values, &residual), 1000);
  EXPECT_EQ(back == values, !TraitsOf(spec_.codec).lossy);
}

TEST_P(CodecTest, WhatIsDecodedAndWhatIsLeftAddUpToWhatWentIn) {
  if (!HasResidual(spec_.codec)) GTEST_SKIP() << "has no residual";
  constexpr int64_t kSize = 1300;
  std::vector<float> residual(kSize, 0.0f);
  std::vector<double> in(kSize, 0.0), out(kSize, 0.0);
  for (int step = 0; step < 60; ++step) {
    const std::vector<float> values = Normals(kSize, step);
    const std::vector<float> back = Decoded(spec_.codec, Encoded(spec_, values, &residual), kSize);
    for (int64_t i = 0; i < kSize; ++i) in[i] += values[i];
    for (int64_t i = 0; i < kSize; ++i) out[i] += back[i];
  }
  // Sixty roundings of numbers up to about a hundred.
  for (int64_t i = 0; i < kSize; ++i) EXPECT_NEAR(in[i], out[i] + residual[i], 60 * 100 * 0x1p-24) << i;
}

TEST_P(CodecTest, RangesAreTheSameAsTheWhole) {
  constexpr int64_t kSize = 2000;
  std::vector<float> values = Normals(kSize, 5), residual(kSize, 0.0f);
  std::vector<uint8_t> encoded = Encoded(spec_, values, &residual);
  const std::vector<float> whole = Decoded(spec_.codec, encoded, kSize);
  const int64_t bytes = static_cast<int64_t>(encoded.size());
  encoded.insert(encoded.begin(), 0xff);
  for (int64_t begin = 0; begin < kSize; begin += 256) {
    for (int64_t count : {int64_t{0}, int64_t{1}, int64_t{100}, int64_t{256}, int64_t{700}, kSize - begin}) {
      if (begin + count > kSize) continue;
      std::vector<float> range(count + 1, 5.0f);
      // At an odd address.
      DecodeRange(spec_.codec, encoded.data() + 1, bytes, kSize, begin, count, range.data());
      EXPECT_EQ(std::memcmp(range.data(), whole.data() + begin, sizeof(float) * count), 0) << begin << " " << count;
      EXPECT_EQ(range[count], 5.0f);
    }
  }
}

TEST_P(CodecTest, WhatIsNotFiniteIsFoundByTheReceiver) {
  for (float bad : {kInfinity, -kInfinity, kNaN, -kNaN}) {
    for (int64_t at : {0, 100, 255, 256, 700, 999}) {
      std::vector<float> values = Normals(1000, 3), residual(1000, 0.25f);
      values[at] = bad;
      const std::vector<uint8_t> encoded = Encoded(spec_, values, &residual);
      EXPECT_FALSE(Finite(spec_.codec, encoded, 1000)) << bad << " at " << at;
      const std::vector<float> back = Decoded(spec_.codec, encoded, 1000);
      EXPECT_FALSE(std::isfinite(back[at])) << bad << " at " << at;
      for (int64_t i = 0; i < 1000; ++i) {
        ASSERT_TRUE(std::isfinite(residual[i]));
        const bool changes = spec_.codec == v1::ONE_BIT && i / 256 != at / 256;
        EXPECT_EQ(residual[i] != 0.25f, changes) << i;
      }
    }
  }
}

TEST(Int8Test, TinyElementsKeepTheirSign) {
  // From where the smallest are zeros to where all magnitudes are common.
  for (float largest : {0x1p-149f, 0x1p-126f, 0x1p-110f, 0x1p-106f, 0x1p-105f, 0x1.8p-105f, 0x1p-100f, 0x1p-20f}) {
    std::vector<float> values;
    for (int i = 0; i < 600; ++i) values.push_back((i % 3 - 1) * largest);
    const std::vector<float> decoded = Decoded(v1::INT8, Encoded({v1::INT8}, values, nullptr), 600);
    for (int i = 0; i < 600; ++i) {
      const float expected = largest < 0x1p-105f ? 0 : values[i];
      ASSERT_NEAR(decoded[i], expected, largest * 1e-6f) << largest << ", element " << i;
    }
  }
}

TEST_P(CodecTest, WhatIsFiniteStaysSo) {
  const float tiny = std::numeric_limits<float>::denorm_min(), small = std::numeric_limits<float>::min();
  for (const std::vector<float>& pattern :
       std::vector<std::vector<float>>{{kLargest},
                                       {-kLargest},
                                       {kLargest, -kLargest},
                                       {kLargest, 1.0f},
                                       {tiny},
                                       {-tiny, 0.0f},
                                       {small, -small},
                                       {127 * small, tiny},
                                       {kLargest / 127, kLargest / 128, -kLargest / 126},
                                       {0.0f},
                                       {-0.0f}}) {
    std::vector<float> values(600), residual(600, 0.0f);
    for (size_t i = 0; i < values.size(); ++i) values[i] = pattern[i % pattern.size()];
    const std::vector<uint8_t> encoded = Encoded(spec_, values, &residual);
    EXPECT_TRUE(Finite(spec_.codec, encoded, 600)) << pattern[0];
    for (float value : Decoded(spec_.codec, encoded, 600)) ASSERT_TRUE(std::isfinite(value)) << pattern[0];
    for (float value : residual) ASSERT_TRUE(std::isfinite(value)) << pattern[0];
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodecTest, testing::ValuesIn(AllCodecs()),
                         [](const auto& info) { return v1::Codec_Name(info.param); });

TEST(CodecGoldenTest, UnspecifiedIsPlainFloats) {
  const std::vector<float> values = {1.5f, -2.0f};
  EXPECT_EQ(Encoded({v1::CODEC_UNSPECIFIED}, values, nullptr), (std::vector<uint8_t>{0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0}));
  EXPECT_FALSE(HasResidual(v1::CODEC_UNSPECIFIED));
}

TEST(CodecGoldenTest, Int8BlocksHaveAScaleAndSteps) {
  // A first block whose elements are whole steps, whatever is drawn, and a second one of two elements.
  std::vector<float> values(258, 0.0f);
  values[0] = 254.0f, values[1] = -254.0f, values[2] = 2.0f, values[255] = -20.0f;
  values[256] = 63.5f, values[257] = -0.5f;
  std::vector<uint8_t> expected;
  Append(expected, 2.0f);
  expected.insert(expected.end(), {127, 0x81, 1});
  expected.resize(4 + 255);
  expected.push_back(0xf6);
  Append(expected, 0.5f);
  expected.insert(expected.end(), {127, 0xff});
  EXPECT_EQ(Encoded({v1::INT8}, values, nullptr), expected);
}

TEST(CodecGoldenTest, OneBitBlocksHaveTwoMeansAndSigns) {
  std::vector<float> values(266, 1.0f), residual(266, 0.0f);
  for (int i = 0; i < 256; i += 2) values[i] = -3.0f;
  for (int i = 256; i < 266; ++i) values[i] = 8.0f;
  values[257] = -1.0f, values[265] = -2.0f, residual[265] = -1.0f;
  std::vector<uint8_t> expected;
  Append(expected, 1.0f);
  Append(expected, 3.0f);
  expected.resize(8 + 32, 0x55);
  Append(expected, 8.0f);
  Append(expected, 2.0f);
  expected.insert(expected.end(), {0x02, 0x02});
  EXPECT_EQ(Encoded({v1::ONE_BIT}, values, &residual), expected);
  EXPECT_EQ(residual[0], 0.0f);
  EXPECT_EQ(residual[257], 1.0f);
  EXPECT_EQ(residual[265], -1.0f);
}

TEST(Int8Test, FollowsItsDefinitionDrawByDraw) {
  constexpr int64_t kSize = 700;
  const std::vector<float> values = Normals(kSize, 9);
  const std::vector<uint8_t> encoded = Encoded({v1::INT8}, values, nullptr, 21);
  for (int64_t i = 0; i < kSize; ++i) {
    const int64_t block = i / 256, part = i % 256 / 32, lane = i % 32;
    float largest = 0;
    for (int64_t j = 256 * block; j < std::min(kSize, 256 * block + 256); ++j) {
      largest = std::max(largest, std::abs(values[j]));
    }
    const uint32_t word = PhiloxBlock(7, 21, 32 * block + lane)[part / 2];
    const uint32_t draw = (word >> (16 * (part % 2))) & 0xffff;
    const float parts = std::round(values[i] * (127 * 65536 / largest));
    const double step = std::floor((static_cast<double>(parts) + draw) / 65536);
    EXPECT_EQ(static_cast<int8_t>(encoded[260 * block + 4 + i % 256]), step) << i;
  }
}

TEST(Int8Test, TheMeanOfManyDrawsIsTheElement) {
  constexpr int64_t kSize = 256;
  constexpr int kDraws = 4000;
  const std::vector<float> values = Normals(kSize, 2);
  float largest = 0;
  for (float value : values) largest = std::max(largest, std::abs(value));
  std::vector<double> sums(kSize, 0.0);
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::vector<float> back = Decoded(v1::INT8, Encoded({v1::INT8}, values, nullptr, draw), kSize);
    for (int64_t i = 0; i < kSize; ++i) sums[i] += back[i];
  }
  // A draw's standard deviation is at most half a step; the mean of all 256 errors is held to a tighter bound.
  const double step = largest / 127, deviation = 0.5 * step / std::sqrt(kDraws);
  double total = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    EXPECT_NEAR(sums[i] / kDraws, values[i], 5 * deviation) << i;
    total += sums[i] / kDraws - values[i];
  }
  EXPECT_LE(std::abs(total / kSize), 5 * deviation / std::sqrt(kSize));
}

TEST(Int8Test, DrawsDependOnSeedAndStream) {
  const std::vector<float> values = Normals(256, 2);
  EXPECT_EQ(Encoded({v1::INT8}, values, nullptr, 1), Encoded({v1::INT8}, values, nullptr, 1));
  EXPECT_NE(Encoded({v1::INT8}, values, nullptr, 1), Encoded({v1::INT8}, values, nullptr, 2));
}

TEST(Int8Test, ScalesThatOverflowAreFoundWhereTheyMatter) {
  // No sender makes this: the scale is finite, but not its products.
  std::vector<uint8_t> encoded;
  Append(encoded, kLargest);
  encoded.insert(encoded.end(), {1, 0xff, 0});
  EXPECT_TRUE(Finite(v1::INT8, encoded, 3));
  encoded[4] = 2;
  EXPECT_FALSE(Finite(v1::INT8, encoded, 3));
  encoded[4] = 0x80;
  EXPECT_FALSE(Finite(v1::INT8, encoded, 3));
}

}  // namespace
}  // namespace rubato
