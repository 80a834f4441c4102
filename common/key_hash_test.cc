#include "common/key_hash.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace rubato {
namespace {

TEST(KeyHashTest, EveryHashHasItsKey) {
  for (const uint64_t secret : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    const KeyHash hash(secret);
    for (const uint64_t key : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{1} << 63, UINT64_MAX - 1, UINT64_MAX}) {
      EXPECT_EQ(hash.KeyOf(hash.Of(key)), key);
      EXPECT_EQ(hash.Of(hash.KeyOf(key)), key) << "every number is some key's hash";
    }
  }
}

TEST(KeyHashTest, NumbersInARowGoEverywhere) {
  const KeyHash hash(7);
  std::set<uint64_t> first_bits, last_bits;
  for (uint64_t key = 0; key < 20000; ++key) {
    first_bits.insert(hash.Of(key) >> 56);
    last_bits.insert(hash.Of(key) & 255);
  }
  EXPECT_EQ(first_bits.size(), 256u);
  EXPECT_EQ(last_bits.size(), 256u);
}

TEST(KeyHashTest, KeysThatMeetUnderOneSecretDoNotUnderAnother) {
  const KeyHash one(1), other(2);
  std::set<uint64_t> shards;
  for (uint64_t i = 0; i < 2000; ++i) shards.insert(other.Of(one.KeyOf(i)) >> 56);
  EXPECT_GT(shards.size(), 200u);
}

}  // namespace
}  // namespace rubato
