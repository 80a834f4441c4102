#include "common/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace rubato {
namespace {

// Known-answer vectors of the Random123 distribution (philox4x32-10).
TEST(PhiloxTest, MatchesPublishedVectors) {
  EXPECT_EQ(PhiloxBlock(0, 0, 0), (std::array<uint32_t, 4>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(PhiloxBlock(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (std::array<uint32_t, 4>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

TEST(RandomTest, NormalHasUnitVariance) {
  Random random(7);
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    double x = random.Normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
}

TEST(RandomTest, BelowCoversItsRangeAndNothingElse) {
  Random random(1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.Below(7));
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_LT(*seen.rbegin(), 7u);
}

TEST(RandomTest, StreamsDiffer) {
  EXPECT_NE(Random(1, StreamId("a")).Next64(), Random(1, StreamId("b")).Next64());
  EXPECT_NE(Random(1, StreamId("a", 1)).Next64(), Random(1, StreamId("a", 2)).Next64());
  EXPECT_NE(Random(1, StreamId("a", 1, 2)).Next64(), Random(1, StreamId("a", 2, 1)).Next64());
}

}  // namespace
}  // namespace rubato
