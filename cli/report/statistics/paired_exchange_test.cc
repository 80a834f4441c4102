#include "cli/report/statistics/paired_exchange.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace rubato {
namespace {

TEST(PairedExchangeTest, FewestPairsThatCanBeUnderFivePercentAreSix) {
  EXPECT_DOUBLE_EQ(SignFlipP({1, 2, 3, 4, 5}), 0.0625);
  EXPECT_DOUBLE_EQ(SignFlipP({1, 2, 3, 4, 5, 6}), 0.03125);
  EXPECT_DOUBLE_EQ(SmallestP(5), 0.0625);
  EXPECT_DOUBLE_EQ(SmallestP(6), 0.03125);
}

TEST(PairedExchangeTest, CountsTheWaysThatAreAtLeastAsFarApart) {
  // Sums of +-1 +-2 +-4, of which 5 is at least as large in magnitude as: 7, 5, 5 of the four without their mirror
  // images: 7, 5, 3, 1.
  EXPECT_DOUBLE_EQ(SignFlipP({-1, 2, 4}), 4.0 / 8);
  EXPECT_DOUBLE_EQ(SignFlipP({1, 2, 4}), 2.0 / 8);
  EXPECT_DOUBLE_EQ(SignFlipP({1, 2, -4}), 1);
}

TEST(PairedExchangeTest, TheSignDoesNotMatter) {
  EXPECT_EQ(SignFlipP({-0.3, 0.1, -0.2, -0.5, -0.1}), SignFlipP({0.3, -0.1, 0.2, 0.5, 0.1}));
}

TEST(PairedExchangeTest, NoDifferenceIsNoEvidence) {
  EXPECT_EQ(SignFlipP({0, 0, 0, 0, 0, 0, 0}), 1);
  EXPECT_EQ(SignFlipP(std::vector<double>(30, 0)), 1);
}

TEST(PairedExchangeTest, EqualSumsStayEqualWhenTheyAreRounded) {
  // No way differs less than 0.01, but in binary 0.1 + 0.2 - 0.3 is a little more than 0.3 - 0.1 - 0.2.
  EXPECT_EQ(SignFlipP({0.1, 0.2, -0.3, 0.01}), 1);
}

TEST(PairedExchangeTest, OfManyPairsItDrawsAndIsNeverZero) {
  EXPECT_DOUBLE_EQ(SignFlipP(std::vector<double>(60, 1)), 1.0 / (1 + kExchangeDraws));
  // 25 pairs of which 17 are up: the binomial test says 0.1078.
  std::vector<double> differences(25, 1);
  std::fill(differences.begin(), differences.begin() + 8, -1);
  EXPECT_NEAR(SignFlipP(differences), 0.1078, 0.01);
}

TEST(PairedExchangeTest, AnyStatisticThatMirrorsWillDo) {
  const std::vector<double> left = {1, 5, 6}, right = {2, 9, 30};
  const double p = ExchangeP(3, [&](const std::vector<bool>& exchanged) {
    double a = 0, b = 0;
    for (size_t i = 0; i < 3; ++i) {
      a = std::max(a, exchanged[i] ? right[i] : left[i]);
      b = std::max(b, exchanged[i] ? left[i] : right[i]);
    }
    return a - b;
  });
  // The largest on one side is 30; the other's is 6 or 9.
  EXPECT_DOUBLE_EQ(p, 0.5);
}

}  // namespace
}  // namespace rubato
