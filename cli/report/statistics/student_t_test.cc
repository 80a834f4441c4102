#include "cli/report/statistics/student_t.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

TEST(StudentTest, NormalDistributionHasItsKnownValues) {
  EXPECT_DOUBLE_EQ(NormalCdf(0), 0.5);
  EXPECT_NEAR(NormalCdf(1.959963984540054), 0.975, 1e-15);
  EXPECT_NEAR(NormalCdf(-3), 0.0013498980316300933, 1e-17);
}

// The two-sided 95 % column of any table of the t distribution.
TEST(StudentTest, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(StudentQuantile(0.975, 1), 12.706204736, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.975, 2), 4.302652730, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.975, 3), 3.182446305, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.975, 4), 2.776445105, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.975, 9), 2.262157163, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.975, 30), 2.042272456, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.975, 999), 1.962341461, 1e-8);
}

TEST(StudentTest, MedianIsZero) { EXPECT_NEAR(StudentQuantile(0.5, 7), 0, 1e-12); }

}  // namespace
}  // namespace rubato
