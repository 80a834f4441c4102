#include "worker/data/epoch_order.h"

#include <gtest/gtest.h>

#include <vector>

namespace rubato::worker {
namespace {

std::vector<int64_t> Positions(const EpochOrder& order) {
  std::vector<int64_t> examples;
  for (int64_t i = 0; i < order.size(); ++i) examples.push_back(order.At(i));
  return examples;
}

TEST(EpochOrderTest, IsAPermutation) {
  for (int64_t n : {0, 1, 2, 1000}) {
    std::vector<bool> seen(n);
    for (int64_t example : Positions(EpochOrder(5, 1, n, true))) {
      ASSERT_GE(example, 0);
      ASSERT_LT(example, n);
      EXPECT_FALSE(seen[example]);
      seen[example] = true;
    }
  }
}

TEST(EpochOrderTest, DependsOnSeedAndEpochAlone) {
  const std::vector<int64_t> order = Positions(EpochOrder(5, 1, 100, true));
  EXPECT_EQ(Positions(EpochOrder(5, 1, 100, true)), order);
  EXPECT_NE(Positions(EpochOrder(5, 2, 100, true)), order);
  EXPECT_NE(Positions(EpochOrder(6, 1, 100, true)), order);
}

// All six orders of three examples are about equally likely.
TEST(EpochOrderTest, IsUnbiased) {
  std::vector<int> counts(6);
  for (int64_t epoch = 0; epoch < 6000; ++epoch) {
    const EpochOrder order(1, epoch, 3, true);
    counts[order.At(0) * 2 + (order.At(1) > order.At(2) ? 1 : 0)]++;
  }
  for (int count : counts) EXPECT_NEAR(count, 1000, 150);
}

// One that is computed, as the halves of its numbers have 12 and 13 bits.
TEST(EpochOrderTest, IsAPermutationOfManyExamples) {
  const int64_t n = EpochOrder::kDrawn + 12345;
  const EpochOrder order(5, 1, n, true);
  std::vector<bool> seen(n);
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t example = order.At(i);
    ASSERT_GE(example, 0);
    ASSERT_LT(example, n);
    if (!seen[example]) ++count;
    seen[example] = true;
  }
  EXPECT_EQ(count, n);
}

TEST(EpochOrderTest, OrderOfManyExamplesDependsOnSeedAndEpoch) {
  const int64_t n = (int64_t{1} << 32) - 1;
  const EpochOrder order(5, 1, n, true);
  const EpochOrder same(5, 1, n, true);
  const EpochOrder other_epoch(5, 2, n, true);
  const EpochOrder other_seed(6, 1, n, true);
  int equal = 0;
  int ups = 0;
  for (int64_t i = 0; i < 10000; ++i) {
    EXPECT_EQ(order.At(i), same.At(i));
    equal += order.At(i) == other_epoch.At(i) ? 1 : 0;
    equal += order.At(i) == other_seed.At(i) ? 1 : 0;
    ups += order.At(i) < order.At(i + 1) ? 1 : 0;
  }
  EXPECT_EQ(equal, 0);
  EXPECT_NEAR(ups, 5000, 150);
}

// Examples that lie together in a file are spread over the epoch: of the first 2^16 positions each sixteenth of the
// file has about as many.
TEST(EpochOrderTest, OrderOfManyExamplesIsEven) {
  const int64_t n = EpochOrder::kDrawn * 3 / 2;
  const EpochOrder order(7, 3, n, true);
  std::vector<int> counts(16);
  for (int64_t i = 0; i < 1 << 16; ++i) counts[order.At(i) * 16 / n]++;
  for (int count : counts) EXPECT_NEAR(count, 4096, 310);  // Five standard deviations.
}

TEST(EpochOrderTest, UnshuffledIsTheFilesOrder) {
  EXPECT_EQ(Positions(EpochOrder(5, 1, 4, false)), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(EpochOrdersTest, KeepsRecentOrders) {
  EpochOrders orders(1, 10, true);
  const auto first = orders.Get(0);
  EXPECT_EQ(orders.Get(1)->epoch(), 1);
  EXPECT_EQ(orders.Get(0), first);
  for (int64_t epoch = 2; epoch < 6; ++epoch) orders.Get(epoch);
  EXPECT_EQ(Positions(*orders.Get(0)), Positions(*first));
}

}  // namespace
}  // namespace rubato::worker
