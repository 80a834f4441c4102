#include "worker/ps_client/table_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/table_keys.h"

namespace rubato::worker {
namespace {

constexpr uint64_t kSeed = 3;
constexpr uint32_t kShards = 8;

// A table whose shards are in messages by `batch_of_shard`, and 200 keys in the order of their hashes.
class TablePartsTest : public testing::Test {
 protected:
  TablePartsTest() {
    for (uint64_t key = 0; key < 200; ++key) keys_.push_back(key);
    std::sort(keys_.begin(), keys_.end(), [&](uint64_t a, uint64_t b) { return hash_.Of(a) < hash_.Of(b); });
  }

  static TableParts Make(const std::vector<int>& batch_of_shard) {
    TableSpec spec;
    spec.config.set_shards(kShards);
    spec.config.set_dimension(3);
    Batching batching;
    batching.batch_of_shard = {batch_of_shard};
    return PartsOfTables({spec}, kSeed, batching).front();
  }

  uint32_t ShardOf(uint64_t key) const { return ShardOfHash(hash_.Of(key), kShards); }

  const KeyHash hash_ = HashOfTable(kSeed, 0);
  std::vector<uint64_t> keys_;
};

TEST_F(TablePartsTest, EachMessageHasItsShardsKeysInOrder) {
  const std::vector<int> batch_of_shard = {4, 4, 6, 4, 5, 5, 6, 6};
  const TableParts table = Make(batch_of_shard);
  EXPECT_EQ(table.batches, std::vector<int>({4, 6, 5}));
  const std::vector<KeyPart> parts = table.Split(keys_);
  ASSERT_EQ(parts.size(), 3);
  for (size_t part = 0; part < parts.size(); ++part) {
    std::vector<uint64_t> expected;
    for (const uint64_t key : keys_) {
      if (batch_of_shard[ShardOf(key)] == table.batches[part]) expected.push_back(key);
    }
    std::vector<uint64_t> gathered(parts[part].count);
    parts[part].Gather(keys_.data(), sizeof(uint64_t), gathered.data());
    EXPECT_EQ(gathered, expected);
  }
  // Shards that follow each other are copied at once.
  EXPECT_EQ(parts[0].runs.size(), 2);
  EXPECT_EQ(parts[1].runs.size(), 2);
  EXPECT_EQ(parts[2].runs.size(), 1);
}

TEST_F(TablePartsTest, GathersWhatBelongsToTheKeys) {
  std::vector<float> rows;
  for (const uint64_t key : keys_) rows.insert(rows.end(), 3, static_cast<float>(key));
  for (const KeyPart& part : Make({0, 1, 0, 1, 0, 1, 0, 1}).Split(keys_)) {
    std::vector<uint64_t> keys(part.count);
    std::vector<float> gathered(3 * part.count);
    part.Gather(keys_.data(), sizeof(uint64_t), keys.data());
    part.Gather(rows.data(), 3 * sizeof(float), gathered.data());
    for (size_t i = 0; i < gathered.size(); ++i) ASSERT_EQ(gathered[i], static_cast<float>(keys[i / 3]));
  }
}

TEST_F(TablePartsTest, OneMessageHasThemAll) {
  const TableParts table = Make(std::vector<int>(kShards, 2));
  const std::vector<KeyPart> parts = table.Split(keys_);
  ASSERT_EQ(parts.size(), 1);
  EXPECT_EQ(parts[0].count, keys_.size());
  EXPECT_EQ(parts[0].runs.size(), 1);
  EXPECT_EQ(table.Split({})[0].count, 0);
  EXPECT_TRUE(table.Split({})[0].runs.empty());
}

TEST_F(TablePartsTest, MessagesWithoutKeysAreEmpty) {
  for (const KeyPart& part : Make({0, 1, 0, 1, 0, 1, 0, 1}).Split({})) {
    EXPECT_EQ(part.count, 0);
    EXPECT_TRUE(part.runs.empty());
  }
}

}  // namespace
}  // namespace rubato::worker
