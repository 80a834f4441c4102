#include "server/table_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/random.h"
#include "common/table_keys.h"
#include "kernels/codec/bf16.h"
#include "server/rules/testing/builders.h"
#include "server/table_message.h"

namespace rubato::server {
namespace {

constexpr uint64_t kSeed = 7;
constexpr uint32_t kShards = 8;
// By table. The rows that three members push to the second are more than are merged at a time.
constexpr size_t kDimensions[] = {5, 700};
constexpr int kTables = 2;

// Those of the keys 0 to 299 that `take` holds for, in the order of their hashes.
std::vector<uint64_t> SomeKeys(int table, const std::function<bool(uint64_t key)>& take) {
  const KeyHash hash = HashOfTable(kSeed, table);
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; key < 300; ++key) {
    if (take(key)) keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end(), [&](uint64_t a, uint64_t b) { return hash.Of(a) < hash.Of(b); });
  return keys;
}

class TableStoreTest : public testing::Test {
 protected:
  TableStoreTest() {
    config_.set_seed(kSeed);
    config_.mutable_cluster()->set_partitions_per_server(1);
    model_.tensors.resize(1);
    job_.add_chunks()->set_length(10);
    for (int table = 0; table < kTables; ++table) {
      v1::TableConfig& added = *config_.mutable_model()->add_tables();
      added.set_name(table == 0 ? "users" : "items");
      added.set_dimension(kDimensions[table]);
      added.set_algorithm(v1::TableConfig::ADAGRAD);
      added.set_learning_rate(0.5);
      added.set_shards(kShards);
      for (uint32_t shard = 0; shard < kShards; ++shard) {
        chunks_.push_back(static_cast<uint32_t>(job_.chunks_size()));
        v1::ChunkPlacement* chunk = job_.add_chunks();
        chunk->set_tensor(1 + table);
        chunk->set_offset(shard);
      }
    }
    FillTableDefaults(config_.mutable_model()->mutable_tables());
    for (const v1::TableConfig& table : config_.model().tables()) model_.tables.push_back({.config = table});
  }

  std::unique_ptr<TableStore> Make() {
    model_.tables[0].config.set_memory_bytes(memory_bytes_);
    auto store = TableStore::Create(config_, model_, job_, chunks_);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  static uint32_t ChunkOf(int table, uint32_t shard) { return 1 + table * kShards + shard; }

  // A worker's push of a step: about a third of the keys, and gradients that are its own.
  Contribution PushOf(int table, uint32_t worker, int64_t step) {
    Random random(kSeed + static_cast<uint64_t>(table), StreamId("push", worker, static_cast<uint64_t>(step)));
    const std::vector<uint64_t> keys = SomeKeys(table, [&](uint64_t) { return random.Below(3) == 0; });
    std::vector<float> gradients(keys.size() * kDimensions[table]);
    for (float& gradient : gradients) gradient = static_cast<float>(random.Normal());
    std::string bytes(reinterpret_cast<const char*>(keys.data()), keys.size() * sizeof(uint64_t));
    bytes.append(reinterpret_cast<const char*>(gradients.data()), gradients.size() * sizeof(float));
    DecodedRequest request;
    request.payload = PayloadView({grpc::Slice(bytes)}, 0, bytes.size());
    v1::TableKeys said;
    said.set_table(static_cast<uint32_t>(table));
    said.set_pushed(keys.size());
    std::vector<uint32_t> chunks;
    for (uint32_t shard = 0; shard < kShards; ++shard) chunks.push_back(ChunkOf(table, shard));
    const TableRules rules = {.model = &model_, .seed = kSeed};
    const auto message = ReadTable(said, true, chunks, request, nullptr, rules, job_);
    EXPECT_TRUE(message.ok()) << message.status();
    messages_.push_back(*message);
    Contribution contribution = server::PushOf(worker, 1, step, 3 + worker);
    contribution.gradient = {messages_.back(), &messages_.back()->by_chunk[0]};
    return contribution;
  }

  // The updates of a step's shards, to which these workers have pushed.
  std::vector<ChunkRules::Update> Updates(int table, int workers, int64_t step) {
    std::vector<ChunkRules::Update> updates;
    for (uint32_t shard = 0; shard < kShards; ++shard) updates.push_back({.chunk = ChunkOf(table, shard)});
    for (int worker = 0; worker < workers; ++worker) {
      const Contribution push = PushOf(table, static_cast<uint32_t>(worker), step);
      for (uint32_t shard = 0; shard < kShards; ++shard) {
        Contribution& added = updates[shard].contributions.emplace_back(push);
        added.gradient = {messages_.back(), &messages_.back()->by_chunk[shard]};
      }
    }
    return updates;
  }

  static std::vector<float> Rows(const TableStore& store, int table) {
    const KeyHash hash = HashOfTable(kSeed, table);
    std::vector<uint64_t> hashes = SomeKeys(table, [](uint64_t) { return true; });
    for (uint64_t& key : hashes) key = hash.Of(key);
    std::vector<float> rows(hashes.size() * kDimensions[table]);
    store.Lookup(table, hashes, rows.data());
    return rows;
  }

  // Applies the updates to a store one by one, and to another one together, and compares them.
  void ExpectSame(const std::vector<ChunkRules::Update>& updates) {
    const auto one_by_one = Make(), together = Make();
    for (const ChunkRules::Update& update : updates) {
      ASSERT_TRUE(one_by_one->Apply(update).ok());
      ASSERT_TRUE(one_by_one->Finish().ok());
      ASSERT_TRUE(together->Apply(update).ok());
    }
    ASSERT_TRUE(together->Finish().ok());
    for (int table = 0; table < kTables; ++table) EXPECT_EQ(Rows(*one_by_one, table), Rows(*together, table));
    EXPECT_EQ(one_by_one->counts().applied, together->counts().applied);
    EXPECT_GT(together->counts().applied, 0);
    EXPECT_TRUE(Rows(*together, 0) != Rows(*Make(), 0) || Rows(*together, 1) != Rows(*Make(), 1));
  }

  v1::JobConfig config_;
  ModelSpec model_;
  v1::JobDescription job_;
  std::vector<uint32_t> chunks_;
  uint64_t memory_bytes_ = uint64_t{1} << 30;
  std::vector<std::shared_ptr<const TableMessage>> messages_;
};

// The second table's rows are more than are encoded at a time.
TEST_F(TableStoreTest, RowsAreEncodedAsTheTableSays) {
  model_.tables[1].config.set_pull(v1::BF16);
  const auto store = Make();
  for (int table = 0; table < kTables; ++table) {
    SCOPED_TRACE(table);
    const std::vector<float> rows = Rows(*store, table);
    std::vector<uint64_t> hashes = SomeKeys(table, [](uint64_t) { return true; });
    for (uint64_t& key : hashes) key = HashOfTable(kSeed, table).Of(key);
    const size_t bytes = store->EncodedBytes(table, hashes.size());
    ASSERT_EQ(bytes, rows.size() * (table == 1 ? sizeof(uint16_t) : sizeof(float)));
    std::vector<float> encoded(rows.size());
    store->LookupEncoded(table, hashes, reinterpret_cast<uint8_t*>(encoded.data()));
    std::vector<float> expected = rows;
    for (size_t i = 0; table == 1 && i < rows.size(); ++i) {
      const uint16_t half = NearestBf16(rows[i]);
      std::memcpy(reinterpret_cast<char*>(expected.data()) + sizeof(half) * i, &half, sizeof(half));
    }
    EXPECT_EQ(std::memcmp(encoded.data(), expected.data(), bytes), 0);
  }
}

TEST_F(TableStoreTest, AMessagesShardsTogetherAreAsOneByOne) {
  for (const int workers : {1, 3}) {
    SCOPED_TRACE(workers);
    std::vector<ChunkRules::Update> updates;
    for (int64_t step = 0; step < 3; ++step) {
      for (ChunkRules::Update& update : Updates(0, workers, step)) updates.push_back(std::move(update));
    }
    ExpectSame(updates);
  }
}

TEST_F(TableStoreTest, MuchIsMergedInParts) { ExpectSame(Updates(1, 3, 0)); }

// What is pushed to a shard need not be finite, and a part of the shards may be another server's.
TEST_F(TableStoreTest, ShardsMayLackMembersAndMembersShards) {
  std::vector<ChunkRules::Update> updates = Updates(0, 3, 0);
  updates[2].contributions[1].examples = 0;
  updates[2].contributions[1].gradient = nullptr;
  updates[5].contributions.erase(updates[5].contributions.begin());
  for (Contribution& contribution : updates[6].contributions) contribution.examples = 0;
  updates.erase(updates.begin() + 3);
  ExpectSame(updates);
}

TEST_F(TableStoreTest, EachUpdateHasItsOwnRate) {
  std::vector<ChunkRules::Update> updates = Updates(0, 2, 0);
  for (size_t i = 4; i < updates.size(); ++i) updates[i].learning_rate_scale = 0.25;
  std::swap(updates[2], updates[6]);
  ExpectSame(updates);
}

// Its weights would be made anew with the plan's rate, and all that it has learnt would shrink.
TEST_F(TableStoreTest, FtrlKeepsItsRate) {
  for (const auto algorithm : {v1::TableConfig::ADAGRAD, v1::TableConfig::FTRL}) {
    v1::TableConfig& table = model_.tables[0].config;
    table.set_algorithm(algorithm);
    table.set_initial_bound(0);
    table.set_beta(1);
    std::vector<ChunkRules::Update> updates = Updates(0, 2, 0);
    const auto whole = Make(), half = Make();
    for (ChunkRules::Update& update : updates) {
      ASSERT_TRUE(whole->Apply(update).ok());
      update.learning_rate_scale = 0.5;
      ASSERT_TRUE(half->Apply(update).ok());
    }
    ASSERT_TRUE(whole->Finish().ok() && half->Finish().ok());
    EXPECT_EQ(Rows(*whole, 0) == Rows(*half, 0), algorithm == v1::TableConfig::FTRL);
  }
}

TEST_F(TableStoreTest, TablesMayTakeTurns) {
  const std::vector<ChunkRules::Update> users = Updates(0, 2, 0), items = Updates(1, 2, 0);
  std::vector<ChunkRules::Update> updates;
  for (size_t i = 0; i < users.size(); ++i) {
    updates.push_back(users[i]);
    updates.push_back(items[i]);
  }
  ExpectSame(updates);
}

// The message may be gone before the store has finished.
TEST_F(TableStoreTest, KeepsWhatItHasNotApplied) {
  const auto store = Make();
  std::vector<ChunkRules::Update> updates = Updates(0, 1, 0);
  const std::weak_ptr<const TableMessage> message = messages_.back();
  messages_.clear();
  for (const ChunkRules::Update& update : updates) ASSERT_TRUE(store->Apply(update).ok());
  updates.clear();
  EXPECT_FALSE(message.expired());
  ASSERT_TRUE(store->Finish().ok());
  EXPECT_TRUE(message.expired());
  EXPECT_NE(Rows(*store, 0), Rows(*Make(), 0));
}

// Also which keys have rows: as if nothing had happened in between.
TEST_F(TableStoreTest, GoesOnFromWhatIsKept) {
  v1::TableConfig& users = model_.tables[0].config;
  users.set_admit_after(2);
  users.set_admission_counters(uint64_t{1} << 18);
  users.set_expire_after_steps(4);
  users.set_most_rows(256);
  const auto whole = Make();
  const auto apply = [](TableStore& store, const std::vector<ChunkRules::Update>& updates) {
    for (const ChunkRules::Update& update : updates) ASSERT_TRUE(store.Apply(update).ok());
    ASSERT_TRUE(store.Finish().ok());
  };
  for (int64_t step = 0; step < 10; ++step) apply(*whole, Updates(0, 2, step));
  const auto restored = Make();
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    const std::shared_ptr<const ShardSnapshot> kept = whole->Keep(ChunkOf(0, shard));
    EXPECT_EQ(kept->record.row_floats(), 2 * kDimensions[0] + 1);
    EXPECT_EQ(kept->record.push_counts_bytes(), sizeof(uint64_t) * kept->push_counts.size());
    const absl::Status status = restored->Restore(
        ChunkOf(0, shard),
        {.record = kept->record, .keys = *kept->keys, .rows = *kept->rows, .push_counts = kept->push_counts});
    ASSERT_TRUE(status.ok()) << status;
  }
  const TableStore::Counts before = whole->counts();
  EXPECT_GT(before.removed, 0);
  EXPECT_GT(before.not_admitted, 0);
  for (int64_t step = 10; step < 20; ++step) {
    const std::vector<ChunkRules::Update> updates = Updates(0, 2, step);
    apply(*whole, updates);
    apply(*restored, updates);
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      const auto one = whole->Keep(ChunkOf(0, shard)), other = restored->Keep(ChunkOf(0, shard));
      ASSERT_EQ(*one->keys, *other->keys);
      ASSERT_EQ(std::memcmp(one->rows->data(), other->rows->data(), sizeof(float) * one->rows->size()), 0);
    }
  }
  const TableStore::Counts after = whole->counts(), since = restored->counts();
  EXPECT_EQ(since.removed, after.removed - before.removed);
  EXPECT_EQ(since.not_admitted, after.not_admitted - before.not_admitted);
  EXPECT_EQ(since.applied, after.applied - before.applied);
}

TEST_F(TableStoreTest, AFullTableIsNamedAndAsItWas) {
  // An empty index takes more.
  memory_bytes_ = 100;
  const auto store = Make();
  for (const ChunkRules::Update& update : Updates(0, 2, 0)) ASSERT_TRUE(store->Apply(update).ok());
  const absl::Status status = store->Finish();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "table 'users'") &&
              absl::StrContains(status.message(), "memory_bytes of model.tables is 100, for 1 partitions"))
      << status;
  EXPECT_EQ(store->counts().rows, 0);
  EXPECT_EQ(store->counts().applied, 0);
  EXPECT_TRUE(store->Finish().ok());
}

}  // namespace
}  // namespace rubato::server
