#include "server/tables/push_counter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "common/random.h"

namespace rubato::server {
namespace {

TEST(PushCounterTest, FewKeysAreCountedExactly) {
  PushCounter counter(size_t{1} << 18);
  Random random(1);
  std::vector<uint64_t> hashes(200);
  for (uint64_t& hash : hashes) hash = random.Next64();
  std::map<uint64_t, uint32_t> counts;
  for (int i = 0; i < 5000; ++i) {
    const uint64_t hash = hashes[random.Below(hashes.size())];
    ASSERT_EQ(counter.Count(hash), ++counts[hash]);
  }
}

// Of one shard: their first bits are the same.
TEST(PushCounterTest, OfAHundredNewKeysOneOrTwoAreTakenForOthers) {
  constexpr int kKeys = 1'000'000;
  PushCounter counter(size_t{1} << 14);
  Random random(2);
  int too_high = 0;
  for (int i = 0; i < kKeys; ++i) too_high += counter.Count(uint64_t{77} << 56 | random.Next64() >> 8) > 1;
  EXPECT_LT(too_high, kKeys / 50);
  EXPECT_GT(too_high, kKeys / 1000);
}

TEST(PushCounterTest, UntilTheyAreHalvedCountsAreNeverTooLow) {
  constexpr size_t kCounters = size_t{1} << 14;
  PushCounter counter(kCounters);
  Random random(2);
  std::map<uint64_t, uint32_t> counts;
  for (size_t i = 0; i < kCounters / 8; ++i) {
    const uint64_t hash = random.Below(1000) << 17;
    EXPECT_GE(counter.Count(hash), ++counts[hash]);
  }
}

TEST(PushCounterTest, CountsEndAtTheirMost) {
  PushCounter counter(size_t{1} << 16);
  for (uint32_t i = 1; i <= 300; ++i) EXPECT_EQ(counter.Count(5), i < 255 ? i : 255);
}

TEST(PushCounterTest, WhatIsNotPushedAnyMoreIsForgotten) {
  PushCounter counter(PushCounter::kLine);
  // Halved with every eighth push.
  for (int i = 0; i < 800; ++i) EXPECT_LE(counter.Count(5), 16u);
  for (int i = 0; i < 5 * 8; ++i) counter.Count(6);
  EXPECT_EQ(counter.Count(5), 1u);
}

TEST(PushCounterTest, GoesOnFromWhatWasSaved) {
  PushCounter counter(8192), restored(8192);
  Random random(3);
  for (int i = 0; i < 700; ++i) counter.Count(random.Below(100));
  const std::vector<uint64_t> saved = counter.Save();
  EXPECT_EQ(saved.size(), PushCounter::SavedWords(8192));
  restored.Restore(saved);
  // Through the next halvings.
  for (int i = 0; i < 3000; ++i) {
    const uint64_t hash = random.Below(100);
    ASSERT_EQ(restored.Count(hash), counter.Count(hash));
  }
  EXPECT_EQ(restored.Save(), counter.Save());
}

}  // namespace
}  // namespace rubato::server
