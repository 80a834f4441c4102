#include "worker/data/power_law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rubato::worker {
namespace {

TEST(PowerLawTest, EveryRankHasItsProbability) {
  constexpr int kDraws = 100000, kRanks = 30;
  for (const double exponent : {0.01, 0.5, 1.0, 1.0 + 1e-12, 1.05, 2.0, 4.0}) {
    const PowerLaw law(kRanks, exponent);
    Random random(5);
    std::vector<int> counts(kRanks + 1);
    for (int i = 0; i < kDraws; ++i) {
      const int64_t rank = law.Draw(&random);
      ASSERT_TRUE(rank >= 1 && rank <= kRanks) << rank;
      ++counts[rank];
    }
    double sum = 0, distance = 0;
    for (int k = 1; k <= kRanks; ++k) sum += std::pow(k, -exponent);
    for (int k = 1; k <= kRanks; ++k) {
      const double expected = kDraws * std::pow(k, -exponent) / sum;
      distance += (counts[k] - expected) * (counts[k] - expected) / expected;
    }
    // Chi-squared of 29 degrees of freedom: more than this once in 10,000.
    EXPECT_LT(distance, 66) << "exponent " << exponent;
  }
}

TEST(PowerLawTest, ManyRanksNeedNoTable) {
  constexpr int kDraws = 50000;
  constexpr int64_t kRanks = int64_t{1} << 40;
  for (const double exponent : {0.01, 0.5, 1.0, 1.05, 2.0, 4.0}) {
    const PowerLaw law(kRanks, exponent);
    // The first ranks one by one, the others by their integral.
    constexpr int kFirst = 1000;
    double first = 0;
    for (int k = 1; k <= kFirst; ++k) first += std::pow(k, -exponent);
    const double power = 1 - exponent;
    const double log_n = std::log(static_cast<double>(kRanks)), log_first = std::log(kFirst + 0.5);
    const double others =
        power == 0 ? log_n - log_first : (std::exp(power * log_n) - std::exp(power * log_first)) / power;
    Random random(6);
    int among_first = 0;
    for (int i = 0; i < kDraws; ++i) {
      const int64_t rank = law.Draw(&random);
      ASSERT_TRUE(rank >= 1 && rank <= kRanks) << rank;
      among_first += rank <= kFirst;
    }
    EXPECT_NEAR(static_cast<double>(among_first) / kDraws, first / (first + others), 0.01) << "exponent " << exponent;
  }
}

TEST(PowerLawTest, OneRankIsAlwaysDrawn) {
  for (const double exponent : {0.01, 1.0, 4.0}) {
    const PowerLaw law(1, exponent);
    Random random(7);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(law.Draw(&random), 1);
  }
}

}  // namespace
}  // namespace rubato::worker
