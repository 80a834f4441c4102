#include "kernels/cpu/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rubato::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(VectorMathTest, ExponentialIsPreciseOverItsWholeRange) {
  for (float x = -87.3f; x < 88.7f; x += 0.0137f) {
    const double expected = std::exp(static_cast<double>(x));
    ASSERT_NEAR(FastExp(x) / expected, 1, 3e-7) << x;
  }
  EXPECT_EQ(FastExp(0), 1);
}

TEST(VectorMathTest, ExponentialEndsInZeroInfinityAndNaN) {
  EXPECT_EQ(FastExp(-88), 0);
  EXPECT_EQ(FastExp(-kInfinity), 0);
  EXPECT_EQ(FastExp(89), kInfinity);
  EXPECT_EQ(FastExp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(FastExp(std::nanf(""))));
  EXPECT_TRUE(std::isnan(FastExp(-std::nanf(""))));
}

TEST(VectorMathTest, NormalCdfIsRelativelyPreciseOnBothSides) {
  for (float x = -12.5f; x < 12.5f; x += 0.0031f) {
    const double expected = 0.5 * std::erfc(-static_cast<double>(x) / std::sqrt(2.0));
    ASSERT_NEAR(NormalCdf(x) / expected, 1, 2e-5) << x;
  }
  EXPECT_EQ(NormalCdf(-kInfinity), 0);
  EXPECT_EQ(NormalCdf(kInfinity), 1);
  EXPECT_TRUE(std::isnan(NormalCdf(std::nanf(""))));
}

}  // namespace
}  // namespace rubato::cpu
