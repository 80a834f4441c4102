// Tables that have rows of some keys alone: of those that were pushed often enough, and not too long ago.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "server/tables/table.h"

namespace rubato::server {
namespace {

constexpr int kDimension = 3;
constexpr uint64_t kEnoughCounters = uint64_t{1} << 22;

TableOptions Options() {
  return {.name = "users",
          .dimension = kDimension,
          .formula = RowFormula::kAdaGrad,
          .initial_bound = 0.5f,
          .seed = 11,
          .secret = 12,
          .memory_bytes = int64_t{1} << 30};
}

std::unique_ptr<Table> Make(const TableOptions& options) {
  auto table = Table::Create(options);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

RowRule RuleAt(uint32_t step) { return {.update = {.learning_rate = 0.05f, .epsilon = 1e-8f}, .step = step}; }

struct Batch {
  std::vector<uint64_t> keys;
  std::vector<float> gradients;
};

Batch BatchOf(const Table& table, std::vector<uint64_t> keys, Random& random) {
  std::sort(keys.begin(), keys.end(), [&](uint64_t a, uint64_t b) { return table.hash().Of(a) < table.hash().Of(b); });
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<float> gradients(keys.size() * kDimension);
  for (float& gradient : gradients) gradient = static_cast<float>(random.Normal());
  return {std::move(keys), std::move(gradients)};
}

Batch RandomBatch(const Table& table, uint64_t first, uint64_t keys, int count, Random& random) {
  std::vector<uint64_t> chosen(count);
  for (uint64_t& key : chosen) key = first + random.Below(keys);
  return BatchOf(table, std::move(chosen), random);
}

void Apply(Table& table, uint32_t step, const Batch& batch) {
  const absl::Status applied = table.Apply(RuleAt(step), batch.keys, batch.gradients.data(), 0.5f);
  ASSERT_TRUE(applied.ok()) << applied;
}

// Rows with their steps, by key.
using Rows = std::map<uint64_t, std::pair<std::vector<float>, uint32_t>>;
Rows RowsOf(const Table& table, TableShard shard = {}) {
  Rows rows;
  table.VisitRows(shard, [&](uint64_t key, absl::Span<const float> row, uint32_t step) {
    rows[key] = {{row.begin(), row.end()}, step};
  });
  return rows;
}

std::vector<float> Read(const Table& table, uint64_t key) {
  std::vector<float> weights(kDimension);
  EXPECT_TRUE(table.Lookup({key}, weights.data()).ok());
  return weights;
}

TEST(TableAdmissionTest, AKeyGetsItsRowWithItsThirdPush) {
  TableOptions options = Options();
  options.admit_after = 3;
  options.admission_counters = kEnoughCounters;
  const auto table = Make(options);
  // The same without the pushes that do not count.
  const auto expected = Make(Options());
  Random random(1);
  std::map<uint64_t, int> pushes;
  int64_t dropped = 0;
  for (uint32_t step = 0; step < 40; ++step) {
    const Batch batch = RandomBatch(*table, 0, 2000, 150, random);
    Batch counts;
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      if (++pushes[batch.keys[i]] < 3) {
        ++dropped;
        continue;
      }
      counts.keys.push_back(batch.keys[i]);
      const float* const gradient = batch.gradients.data() + kDimension * i;
      counts.gradients.insert(counts.gradients.end(), gradient, gradient + kDimension);
    }
    Apply(*table, step, batch);
    Apply(*expected, step, counts);
    ASSERT_EQ(RowsOf(*table), RowsOf(*expected));
    ASSERT_EQ(table->not_admitted(), dropped);
  }
  EXPECT_GT(table->rows(), 200);
  // One that has no row reads what it would begin with.
  const auto without = std::find_if(pushes.begin(), pushes.end(), [](const auto& key) { return key.second == 2; });
  ASSERT_NE(without, pushes.end());
  EXPECT_EQ(Read(*table, without->first), Read(*Make(Options()), without->first));
}

// What happens in a virtual shard depends on nothing but its own updates, wherever it is.
TEST(TableAdmissionTest, ShardsApartDoWhatTheyDoTogether) {
  TableOptions options = Options();
  options.admit_after = 2;
  options.admission_counters = Table::kShards * PushCounter::kLine;
  options.expire_after = 16;
  options.most_rows = Table::kShards * 6;
  const auto together = Make(options), first = Make(options), second = Make(options);
  Random random(2);
  for (uint32_t step = 0; step < 120; ++step) {
    const Batch batch = RandomBatch(*together, step * 50, 4000, 500, random);
    Apply(*together, step, batch);
    Batch parts[2];
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      Batch& part = parts[together->hash().Of(batch.keys[i]) >> 63];
      part.keys.push_back(batch.keys[i]);
      const float* const gradient = batch.gradients.data() + kDimension * i;
      part.gradients.insert(part.gradients.end(), gradient, gradient + kDimension);
    }
    Apply(*first, step, parts[0]);
    Apply(*second, step, parts[1]);
  }
  EXPECT_GT(together->removed(), 1000);
  EXPECT_GT(together->not_admitted(), 1000);
  EXPECT_EQ(first->removed() + second->removed(), together->removed());
  Rows parts = RowsOf(*first, {0, 2});
  parts.merge(RowsOf(*second, {1, 2}));
  EXPECT_EQ(parts, RowsOf(*together));
}

TEST(TableExpiryTest, RowsWithoutAnUpdateGoAndOthersStay) {
  constexpr uint32_t kExpire = 64;
  TableOptions options = Options();
  options.expire_after = kExpire;
  const auto table = Make(options);
  Random random(3);
  // The last update of each key that is to have a row, and of its virtual shard.
  std::map<uint64_t, uint32_t> last;
  uint32_t shard_steps[Table::kShards] = {};
  const auto shard_of = [&](uint64_t key) { return table->hash().Of(key) >> (64 - Table::kShardBits); };
  for (uint32_t step = 0; step < 600; ++step) {
    // A window that moves: each key is pushed for some time, and then never again.
    const Batch batch = RandomBatch(*table, 10 * step, 800, 400, random);
    Apply(*table, step, batch);
    for (const uint64_t key : batch.keys) last[key] = step;
    bool sweeps[Table::kShards] = {};
    for (const uint64_t key : batch.keys) {
      const uint64_t shard = shard_of(key);
      constexpr uint64_t kEvery = kExpire / 8;
      sweeps[shard] |= (step + shard) / kEvery != (shard_steps[shard] + shard) / kEvery;
      shard_steps[shard] = step;
    }
    std::erase_if(last, [&](const auto& key) { return sweeps[shard_of(key.first)] && key.second + kExpire < step; });
    ASSERT_EQ(table->rows(), static_cast<int64_t>(last.size())) << step;
    if (step % 50 != 49) continue;
    std::map<uint64_t, uint32_t> steps;
    for (const auto& [key, row] : RowsOf(*table)) steps[key] = row.second;
    ASSERT_EQ(steps, last) << step;
  }
  EXPECT_GT(table->removed(), 4000);
  EXPECT_LT(table->rows(), 2000);
  // One that is gone begins anew.
  const uint64_t gone = 5;
  const std::vector<float> initial = Read(*Make(Options()), gone);
  EXPECT_EQ(Read(*table, gone), initial);
  const Batch again = BatchOf(*table, {gone}, random);
  Apply(*table, 600, again);
  const auto fresh = Make(Options());
  Apply(*fresh, 600, again);
  EXPECT_EQ(Read(*table, gone), Read(*fresh, gone));
}

TEST(TableExpiryTest, AWorkerBehindTheOthersMakesNothingOlder) {
  TableOptions options = Options();
  options.expire_after = 8;
  const auto table = Make(options);
  Random random(4);
  Apply(*table, 100, BatchOf(*table, {1}, random));
  Apply(*table, 90, BatchOf(*table, {1}, random));
  EXPECT_EQ(RowsOf(*table).at(1).second, 100u);
}

TEST(TableCapTest, TheOldestRowsGo) {
  constexpr uint64_t kEach = 40;
  TableOptions options = Options();
  options.most_rows = Table::kShards * kEach;
  const auto table = Make(options);
  Random random(5);
  std::map<uint64_t, uint32_t> last;
  for (uint32_t step = 0; step < 100; ++step) {
    const Batch batch = RandomBatch(*table, 0, 30'000, 1000, random);
    Apply(*table, step, batch);
    for (const uint64_t key : batch.keys) last[key] = step;
    for (uint32_t shard = 0; shard < Table::kShards && step % 20 == 19; ++shard) {
      const Rows rows = RowsOf(*table, {shard, Table::kShards});
      ASSERT_LE(rows.size(), kEach);
      uint32_t oldest = UINT32_MAX;
      for (const auto& [key, row] : rows) {
        ASSERT_EQ(row.second, last[key]);
        oldest = std::min(oldest, row.second);
      }
      for (const auto& [key, its] : last) {
        if (table->hash().Of(key) >> (64 - Table::kShardBits) != shard || rows.contains(key)) continue;
        ASSERT_LE(its, oldest) << key << " is newer than one that is there";
      }
    }
  }
  EXPECT_GT(table->removed(), 5000);
  EXPECT_LE(table->rows(), static_cast<int64_t>(options.most_rows));
  EXPECT_GT(table->rows(), static_cast<int64_t>(options.most_rows * 9 / 10));
}

// New keys without end, in memory that has an end.
TEST(TableCapTest, AStreamOfNewKeysFitsTheMemoryLimit) {
  TableOptions options = Options();
  options.most_rows = 20'000;
  options.memory_bytes = int64_t{4} << 20;
  const auto table = Make(options);
  Random random(6);
  int64_t at_first = 0;
  for (uint32_t step = 0; step < 400; ++step) {
    Apply(*table, step, RandomBatch(*table, uint64_t{step} << 32, uint64_t{1} << 32, 1000, random));
    if (step == 100) at_first = table->memory_bytes();
  }
  EXPECT_GT(table->removed(), 370'000);
  EXPECT_LE(static_cast<double>(table->memory_bytes()), 1.1 * static_cast<double>(at_first));
  EXPECT_LE(table->memory_bytes(), options.memory_bytes);
}

// What is counted takes no row; the push that would make one is refused, and does not count.
TEST(TableAdmissionTest, AFullTableCountsKeysAndRefusesTheirRows) {
  TableOptions options = Options();
  options.admit_after = 2;
  options.admission_counters = kEnoughCounters;
  options.memory_bytes = 100;  // An empty index takes more.
  const auto table = Make(options);
  Random random(8);
  const Batch batch = RandomBatch(*table, 0, 2000, 150, random);
  Apply(*table, 0, batch);
  EXPECT_EQ(table->not_admitted(), static_cast<int64_t>(batch.keys.size()));
  const std::vector<uint64_t> counts = table->PushCounts({});
  const absl::Status status = table->Apply(RuleAt(1), batch.keys, batch.gradients.data(), 0.5f);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_NE(status.message().find("new rows of 32 bytes; it has 0 rows"), absl::string_view::npos) << status;
  EXPECT_EQ(table->PushCounts({}), counts);
  EXPECT_EQ(table->rows(), 0);
}

TEST(TableAdmissionTest, GoesOnFromWhatWasSaved) {
  constexpr uint32_t kParts = 4;
  TableOptions options = Options();
  options.admit_after = 2;
  options.admission_counters = kEnoughCounters;
  options.expire_after = 16;
  options.most_rows = Table::kShards * 6;
  const auto trained = Make(options), restored = Make(options);
  EXPECT_EQ(trained->row_floats(), 2 * kDimension + 1);
  Random random(7);
  uint32_t step = 0;
  for (; step < 50; ++step) Apply(*trained, step, RandomBatch(*trained, step * 50, 4000, 500, random));
  for (uint32_t part = 0; part < kParts; ++part) {
    std::vector<uint64_t> keys;
    std::vector<float> values;
    for (const auto& [key, row] : RowsOf(*trained, {part, kParts})) {
      keys.push_back(key);
      values.insert(values.end(), row.first.begin(), row.first.end());
      values.push_back(0);
      std::memcpy(&values.back(), &row.second, sizeof(row.second));
    }
    ASSERT_TRUE(restored->RestorePushCounts({part, kParts}, trained->PushCounts({part, kParts})).ok());
    const absl::Status status = restored->Restore({part, kParts}, keys, values.data());
    ASSERT_TRUE(status.ok()) << status;
  }
  const int64_t removed = trained->removed();
  for (; step < 100; ++step) {
    ASSERT_EQ(RowsOf(*restored), RowsOf(*trained)) << step;
    const Batch batch = RandomBatch(*trained, step * 50, 4000, 500, random);
    Apply(*trained, step, batch);
    Apply(*restored, step, batch);
  }
  EXPECT_GT(trained->removed(), removed + 1000);
  EXPECT_EQ(restored->removed(), trained->removed() - removed);
}

TEST(TableAdmissionTest, CountsOfAnotherSizeAreRefused) {
  TableOptions options = Options();
  const auto all = Make(options);
  EXPECT_TRUE(all->PushCounts({0, 4}).empty());
  options.admit_after = 2;
  options.admission_counters = Table::kShards * PushCounter::kLine;
  const auto some = Make(options);
  const std::vector<uint64_t> counts = some->PushCounts({0, 4});
  // Nothing was counted where every key was admitted.
  EXPECT_TRUE(some->RestorePushCounts({0, 4}, {}).ok());
  for (const absl::Status& status : {some->RestorePushCounts({0, 2}, counts), all->RestorePushCounts({0, 4}, counts)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("table 'users': 4608 bytes of counted pushes"), absl::string_view::npos) << status;
  }
}

TEST(TableAdmissionTest, OptionsOutOfRangeAreNamed) {
  const auto expect = [](const TableOptions& options, const std::string& text) {
    const absl::Status status = Table::Create(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status.message().find(text), absl::string_view::npos) << status;
  };
  TableOptions options = Options();
  options.admit_after = 0;
  expect(options, "table 'users': admit_after: 0; 1 to 255 is allowed");
  options.admit_after = 2;
  expect(options, "admission_counters: 0; a power of two, 16384 or more, is allowed");
  options.admission_counters = 3 << 16;
  expect(options, "admission_counters: 196608;");
  options.admit_after = 1;
  options.most_rows = 255;
  expect(options, "most_rows: 255; 0, or 256 or more, is allowed");
}

}  // namespace
}  // namespace rubato::server
