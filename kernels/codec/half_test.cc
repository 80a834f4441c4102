// BF16 and FP16 against the definitions of the formats.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/codec/codec.h"

namespace rubato {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<uint16_t> Halves(v1::Codec codec, const std::vector<float>& values) {
  std::vector<uint16_t> halves(values.size());
  const int64_t n = static_cast<int64_t>(values.size());
  EXPECT_EQ(Encode({codec}, values.data(), n, nullptr, 0, 0, reinterpret_cast<uint8_t*>(halves.data())), 2 * n);
  return halves;
}

std::vector<float> Floats(v1::Codec codec, const std::vector<uint16_t>& halves) {
  std::vector<float> values(halves.size());
  const int64_t n = static_cast<int64_t>(values.size());
  Decode(codec, reinterpret_cast<const uint8_t*>(halves.data()), 2 * n, n, values.data());
  return values;
}

// What 16 bits stand for, from the format's definition.
double Meaning(v1::Codec codec, uint16_t half) {
  const int mantissa_bits = codec == v1::FP16 ? 10 : 7, bias = codec == v1::FP16 ? 15 : 127;
  const int exponent = (half & 0x7fff) >> mantissa_bits, mantissa = half & ((1 << mantissa_bits) - 1);
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                         : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return half & 0x8000 ? -magnitude : magnitude;
}

class HalfTest : public testing::TestWithParam<v1::Codec> {
 protected:
  v1::Codec codec_ = GetParam();
  // The bits of infinity.
  const uint16_t infinity_ = codec_ == v1::FP16 ? 0x7c00 : 0x7f80;
};

TEST_P(HalfTest, EveryNumberDecodesToItsMeaningAndBack) {
  std::vector<uint16_t> all;
  for (int half = 0; half < 0x10000; ++half) {
    if ((half & 0x7fff) < infinity_) all.push_back(static_cast<uint16_t>(half));
  }
  const std::vector<float> values = Floats(codec_, all);
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(values[i], Meaning(codec_, all[i])) << all[i];
  EXPECT_EQ(Halves(codec_, values), all);
}

TEST_P(HalfTest, RoundsToTheNearestAndTiesToEven) {
  std::vector<float> values;
  std::vector<uint16_t> expected;
  for (uint16_t low = 0; low + 1 < infinity_; ++low) {
    const float middle = static_cast<float>((Meaning(codec_, low) + Meaning(codec_, low + 1)) / 2);
    const uint16_t high = low + 1, even = low % 2 == 0 ? low : high;
    for (const auto& [value, half] : {std::pair(std::nextafter(middle, 0.0f), low), std::pair(middle, even),
                                      std::pair(std::nextafter(middle, kInfinity), high)}) {
      values.insert(values.end(), {value, -value});
      expected.insert(expected.end(), {half, static_cast<uint16_t>(half | 0x8000)});
    }
  }
  const std::vector<uint16_t> halves = Halves(codec_, values);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(halves[i], expected[i]) << values[i];
}

TEST_P(HalfTest, FiniteNumbersThatAreTooLargeBecomeTheLargest) {
  const uint16_t largest = infinity_ - 1;
  const float after = static_cast<float>(2 * Meaning(codec_, largest) - Meaning(codec_, largest - 1));
  const float middle = static_cast<float>((Meaning(codec_, largest) + static_cast<double>(kLargest)) / 2);
  for (float value : {kLargest, middle, std::isfinite(after) ? after : kLargest}) {
    EXPECT_EQ(Halves(codec_, {value, -value}),
              (std::vector<uint16_t>{largest, static_cast<uint16_t>(largest | 0x8000)}));
  }
}

TEST_P(HalfTest, InfinitiesAndNaNStayThat) {
  // Also NaN whose set bits are all in the half that is cut off.
  const float low_nan = std::bit_cast<float>(0x7f800001u);
  const std::vector<float> back =
      Floats(codec_, Halves(codec_, {kInfinity, -kInfinity, kNaN, -kNaN, low_nan, -low_nan}));
  EXPECT_EQ(back[0], kInfinity);
  EXPECT_EQ(back[1], -kInfinity);
  for (int i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(back[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(All, HalfTest, testing::Values(v1::BF16, v1::FP16),
                         [](const auto& info) { return v1::Codec_Name(info.param); });

TEST(HalfGoldenTest, BytesAreAsDocumented) {
  EXPECT_EQ(Halves(v1::BF16, {1.0f, -2.5f, 3.14159274f, 0.0f, -0.0f}),
            (std::vector<uint16_t>{0x3f80, 0xc020, 0x4049, 0x0000, 0x8000}));
  EXPECT_EQ(Halves(v1::FP16, {1.0f, -2.5f, 3.14159274f, 65504.0f, 0x1p-24f}),
            (std::vector<uint16_t>{0x3c00, 0xc100, 0x4248, 0x7bff, 0x0001}));
}

}  // namespace
}  // namespace rubato
