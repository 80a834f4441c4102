#include "server/tables/hash_keys.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/random.h"

namespace rubato::server {
namespace {

TEST(HashKeysTest, EveryInstructionSetGivesTheHashOfEachKey) {
  const KeyHash hash(0x0123456789abcdef);
  Random random(1);
  for (const Isa isa : kAllIsas) {
    if (!Supports(isa)) continue;
    for (const size_t count : {0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 100, 1001}) {
      std::vector<uint64_t> keys(count), expected;
      for (uint64_t& key : keys) key = random.Next64();
      if (count > 2) keys[1] = 0, keys[2] = UINT64_MAX;
      for (const uint64_t key : keys) expected.push_back(hash.Of(key));
      std::vector<uint64_t> elsewhere(count);
      HashKeysOn(isa, hash, keys, elsewhere.data());
      EXPECT_EQ(elsewhere, expected) << IsaName(isa) << ", " << count;
      HashKeysOn(isa, hash, keys, keys.data());
      EXPECT_EQ(keys, expected) << IsaName(isa) << ", " << count << ", in place";
    }
  }
}

}  // namespace
}  // namespace rubato::server
