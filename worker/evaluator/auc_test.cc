#include "worker/evaluator/auc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "common/random.h"

namespace rubato::worker {
namespace {

double Of(const std::vector<std::pair<float, int>>& examples) {
  Auc auc;
  for (const auto& [score, label] : examples) auc.Add(score, label);
  return auc.Value().value_or(-1);
}

TEST(AucTest, CountsPairs) {
  EXPECT_EQ(Of({{-1, 0}, {2, 1}}), 1);
  EXPECT_EQ(Of({{2, 0}, {-1, 1}}), 0);
  EXPECT_EQ(Of({{3, 0}, {3, 1}}), 0.5);
  EXPECT_EQ(Of({{-2, 0}, {-1, 1}, {0.5f, 0}, {4, 1}}), 0.75);
  EXPECT_EQ(Of({{-100, 0}, {-0.01f, 1}, {0, 1}, {1e30f, 1}}), 1) << "far apart and of both signs";
}

TEST(AucTest, InfinityAndNanHavePlaces) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Of({{-kInf, 0}, {1e38f, 0}, {kInf, 1}}), 1);
  EXPECT_EQ(Of({{std::nanf(""), 1}, {-1e38f, 0}}), 0);
}

TEST(AucTest, IsAbsentForOneClass) {
  Auc auc;
  EXPECT_FALSE(auc.Value().has_value());
  auc.Add(1, 1);
  EXPECT_FALSE(auc.Value().has_value());
}

TEST(AucTest, IsCloseToThatOfAllPairs) {
  Random random(1);
  std::vector<std::pair<float, int>> examples;
  for (int i = 0; i < 2000; ++i) {
    const int label = static_cast<int>(random.Below(2));
    examples.emplace_back(static_cast<float>(random.Normal() + 0.8 * label), label);
  }
  double pairs = 0, above = 0;
  for (const auto& [zero, is_one] : examples) {
    if (is_one) continue;
    for (const auto& [one, label] : examples) {
      if (label == 0) continue;
      ++pairs;
      above += one > zero ? 1 : one == zero ? 0.5 : 0;
    }
  }
  EXPECT_NEAR(Of(examples), above / pairs, 2e-4);
}

}  // namespace
}  // namespace rubato::worker
