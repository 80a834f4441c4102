#include "server/tables/shard_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/random.h"

namespace rubato::server {
namespace {

std::unique_ptr<TableMemory> Memory() {
  auto memory = TableMemory::Create(size_t{1} << 30);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return *std::move(memory);
}

// A hash of the shard, with eight bits of its number.
uint64_t HashIn(uint32_t shard, uint64_t rest) { return uint64_t{shard} << 56 | rest >> 8; }

void ExpectEntries(const ShardIndex& index, const std::map<uint64_t, uint32_t>& rows) {
  std::vector<ShardIndex::Entry> entries = index.Entries();
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.hash < b.hash; });
  ASSERT_EQ(entries.size(), rows.size());
  auto row = rows.begin();
  for (size_t i = 0; i < entries.size(); ++i, ++row) {
    ASSERT_EQ(std::pair(entries[i].hash, entries[i].row), std::pair(row->first, row->second)) << i;
  }
}

class ShardIndexTest : public testing::TestWithParam<uint32_t> {};

TEST_P(ShardIndexTest, FindsWhatWasInsertedThroughAllGrowth) {
  const auto memory = Memory();
  ShardIndex index(memory.get(), GetParam(), 8);
  Random random(GetParam());
  std::map<uint64_t, uint32_t> rows;
  // Several segments of full size.
  for (uint32_t row = 1; row <= 100'000; ++row) {
    const uint64_t hash = HashIn(GetParam(), random.Next64());
    ASSERT_EQ(index.Find(hash), 0u);
    index.Insert(hash, row);
    rows[hash] = row;
    if ((row & (row - 1)) != 0 && row % 10'000 != 0) continue;
    for (const auto& [there, its] : rows) ASSERT_EQ(index.Find(there), its) << "after " << row;
  }
  EXPECT_EQ(index.size(), 100'000);
  ExpectEntries(index, rows);
  for (int i = 0; i < 10'000; ++i) EXPECT_EQ(index.Find(HashIn(GetParam(), random.Next64())), 0u);
}

INSTANTIATE_TEST_SUITE_P(Shards, ShardIndexTest, testing::Values(0, 1, 7, 255));

TEST(ShardIndexTest, TheFirstAndTheLastHashAreHashesLikeOthers) {
  const auto memory = Memory();
  ShardIndex first(memory.get(), 0, 8), last(memory.get(), 255, 8);
  EXPECT_EQ(first.Find(0), 0u);
  first.Insert(0, 5);
  last.Insert(UINT64_MAX, 6);
  EXPECT_EQ(first.Find(0), 5u);
  EXPECT_EQ(last.Find(UINT64_MAX), 6u);
  EXPECT_EQ(last.Find(UINT64_MAX - 1), 0u);
}

TEST(ShardIndexTest, HashesThatDifferInTheirLastBitsAreFound) {
  const auto memory = Memory();
  ShardIndex index(memory.get(), 3, 8);
  // They share their places in the directory, and begin in lines side by side.
  for (uint32_t row = 1; row <= 3000; ++row) index.Insert(HashIn(3, 0) + row, row);
  for (uint32_t row = 1; row <= 3000; ++row) ASSERT_EQ(index.Find(HashIn(3, 0) + row), row);
}

TEST(ShardIndexTest, WhatIsKeptIsFoundWithItsStepAndTheRestIsNot) {
  const auto memory = Memory();
  ShardIndex index(memory.get(), 5, 8);
  Random random(2);
  std::map<uint64_t, uint32_t> rows, kept;
  for (uint32_t row = 1; row <= 50'000; ++row) {
    const uint64_t hash = HashIn(5, random.Next64());
    index.Insert(hash, row, row / 2);
    rows[hash] = row;
  }
  for (const auto& [hash, row] : rows) {
    if (row % 3 == 0) index.SetStep(hash, 7, index.LineOf(hash));
  }
  std::vector<ShardIndex::Entry> entries;
  for (const ShardIndex::Entry& entry : index.Entries()) {
    EXPECT_EQ(entry.step, entry.row % 3 == 0 ? 7 : entry.row / 2);
    if (entry.row % 5 != 0) continue;
    entries.push_back(entry);
    kept[entry.hash] = entry.row;
  }
  index.Keep(entries);
  EXPECT_EQ(index.size(), static_cast<int64_t>(kept.size()));
  for (const auto& [hash, row] : rows) ASSERT_EQ(index.Find(hash), row % 5 == 0 ? row : 0u);
  // Its memory is used again as it grows to where it was.
  const int64_t bytes = memory->bytes();
  for (const auto& [hash, row] : rows) {
    if (row % 5 != 0) index.Insert(hash, row);
  }
  ExpectEntries(index, rows);
  EXPECT_EQ(memory->bytes(), bytes);
  index.Keep({});
  EXPECT_EQ(index.size(), 0);
  EXPECT_EQ(index.Find(rows.begin()->first), 0u);
}

TEST(ShardIndexTest, SegmentsThatWereOutgrownAreUsedAgain) {
  const auto memory = Memory();
  ShardIndex first(memory.get(), 0, 8);
  Random random(1);
  for (uint32_t row = 1; row <= 10'000; ++row) first.Insert(HashIn(0, random.Next64()), row);
  const int64_t bytes = memory->bytes();
  // Shards that are eight apart have segments of one size: all but its last one were there.
  ShardIndex second(memory.get(), 8, 8);
  for (uint32_t row = 1; row <= 5'000; ++row) second.Insert(HashIn(8, random.Next64()), row);
  EXPECT_EQ(memory->bytes(), bytes);
}

}  // namespace
}  // namespace rubato::server
