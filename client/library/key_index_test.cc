#include "client/library/key_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace rubato::client {
namespace {

TEST(KeyIndexTest, NumbersKeysInTheirOrder) {
  KeyIndex index;
  EXPECT_EQ(index.Find(7), KeyIndex::kNone);
  EXPECT_EQ(index.Add(7), 0u);
  EXPECT_EQ(index.Add(UINT64_MAX), 1u);
  EXPECT_EQ(index.Add(7), 0u);
  EXPECT_EQ(index.Add(0), 2u);
  EXPECT_EQ(index.Find(0), 2u);
  EXPECT_EQ(index.Find(1), KeyIndex::kNone);
  EXPECT_EQ(index.keys(), (std::vector<uint64_t>{7, UINT64_MAX, 0}));
}

TEST(KeyIndexTest, ForgetsEverything) {
  KeyIndex index;
  index.Add(7);
  index.Clear();
  EXPECT_EQ(index.Find(7), KeyIndex::kNone);
  EXPECT_TRUE(index.keys().empty());
  EXPECT_EQ(index.Add(8), 0u);
}

TEST(KeyIndexTest, EqualsAMapThroughManyGrowths) {
  constexpr uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  KeyIndex index;
  std::map<uint64_t, uint32_t> expected;
  for (int i = 0; i < 20000; ++i) {
    // Fields in upper bits, few values in lower ones.
    const uint64_t key = (random() % 26) << 40 | random() % 500;
    const auto number = expected.emplace(key, static_cast<uint32_t>(expected.size())).first->second;
    ASSERT_EQ(index.Add(key), number) << key << ", seed " << kSeed;
  }
  for (const auto& [key, number] : expected) EXPECT_EQ(index.Find(key), number);
  EXPECT_EQ(index.keys().size(), expected.size());
}

}  // namespace
}  // namespace rubato::client
