#include "coordinator/rules/policies/parts/batch_shares.h"

#include <gtest/gtest.h>

#include <numeric>

namespace rubato::coordinator {
namespace {

using Examples = std::vector<uint32_t>;

TEST(BatchSharesTest, FollowTheRates) {
  EXPECT_EQ(BatchShares({10, 10, 20, 30}, 70, 70), (Examples{10, 10, 20, 30}));
  EXPECT_EQ(BatchShares({5, 5}, 64, 64), (Examples{32, 32}));
}

TEST(BatchSharesTest, TheSumIsKeptInWholeExamples) {
  EXPECT_EQ(BatchShares({1, 1, 2, 3}, 128, 128), (Examples{18, 18, 37, 55}));
  for (int64_t total = 5; total < 60; ++total) {
    const Examples shares = BatchShares({0.3, 1, 1.7, 0.9, 4}, total, total);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), int64_t{0}), total);
  }
}

TEST(BatchSharesTest, WhatOneCannotTakeIsForTheOthers) {
  EXPECT_EQ(BatchShares({1, 1, 100}, 60, 30), (Examples{15, 15, 30}));
  EXPECT_EQ(BatchShares({1, 30, 100}, 90, 30), (Examples{30, 30, 30}));
}

TEST(BatchSharesTest, EverybodyHasAnExample) {
  EXPECT_EQ(BatchShares({1e-6, 1, 1}, 21, 20), (Examples{1, 10, 10}));
  EXPECT_EQ(BatchShares({1, 100}, 2, 2), (Examples{1, 1}));
}

TEST(LongestBatchTest, IsThatOfTheSlowestForItsExamples) {
  EXPECT_EQ(LongestBatch({10, 10}, {10, 5}), 2);
  EXPECT_EQ(LongestBatch({20, 4}, {10, 5}), 2);
}

}  // namespace
}  // namespace rubato::coordinator
