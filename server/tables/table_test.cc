#include "server/tables/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/process_memory.h"
#include "common/random.h"
#include "server/tables/row_loops.h"

namespace rubato::server {
namespace {

constexpr int64_t kMemory = int64_t{1} << 30;
constexpr RowFormula kFormulas[] = {RowFormula::kSgd, RowFormula::kAdaGrad, RowFormula::kRowWiseAdaGrad,
                                    RowFormula::kLazyAdam, RowFormula::kFtrl};

TableOptions Options(int dimension, RowFormula formula, bool is_bf16 = false) {
  return {.name = "users",
          .dimension = dimension,
          .formula = formula,
          .is_bf16 = is_bf16,
          .initial_bound = formula == RowFormula::kFtrl ? 0.0f : 0.5f,
          .seed = 11,
          .secret = 12,
          .memory_bytes = kMemory};
}

std::unique_ptr<Table> Make(const TableOptions& options) {
  auto table = Table::Create(options);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

RowRule Rule(uint32_t step = 0) {
  static const auto corrections = std::make_shared<const AdamCorrections>(0.9, 0.999);
  return {.update = {.learning_rate = 0.05f,
                     .beta1 = 0.9f,
                     .beta1_complement = 0.1f,
                     .beta2 = 0.999f,
                     .beta2_complement = 0.001f,
                     .epsilon = 1e-8f},
          .corrections = corrections,
          .l1 = 0.02f,
          .l2 = 0.001f,
          .step = step};
}

// A batch as a worker makes it.
struct Batch {
  std::vector<uint64_t> keys;
  std::vector<float> gradients;
};

Batch RandomBatch(const Table& table, int dimension, uint64_t keys, int count, Random& random) {
  Batch batch;
  for (int i = 0; i < count; ++i) {
    // Small ones, and the largest.
    const uint64_t key = random.Below(keys);
    batch.keys.push_back(key % 7 == 0 ? ~key : key);
  }
  std::sort(batch.keys.begin(), batch.keys.end(),
            [&](uint64_t a, uint64_t b) { return table.hash().Of(a) < table.hash().Of(b); });
  batch.keys.erase(std::unique(batch.keys.begin(), batch.keys.end()), batch.keys.end());
  for (size_t i = 0; i < batch.keys.size() * dimension; ++i) {
    batch.gradients.push_back(static_cast<float>(random.Normal()));
  }
  return batch;
}

// The same in the simplest way: a map of rows, one weight at a time.
class ModelTable {
 public:
  explicit ModelTable(const TableOptions& options) : options_(options) {}

  std::vector<float> Read(uint64_t key) const {
    const auto row = rows_.find(key);
    return row == rows_.end() ? Initial(key) : row->second.weights;
  }

  void Update(const RowRule& rule, uint64_t key, const float* gradients, float scale) {
    Row& row = rows_.try_emplace(key, Row{Initial(key), {}, {}, 0}).first->second;
    const int n = options_.dimension;
    row.first.resize(n);
    row.second.resize(n);
    ++row.updates;
    float lanes[8] = {};
    for (int i = 0; i < n; ++i) lanes[i % 8] += (scale * gradients[i]) * (scale * gradients[i]);
    const float squares =
        ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    if (options_.formula == RowFormula::kRowWiseAdaGrad) row.first[0] += squares / static_cast<float>(n);
    for (int i = 0; i < n; ++i) {
      UpdateOne(rule, scale * gradients[i], row, i);
      if (options_.is_bf16) row.weights[i] = RoundAtRandom(row.weights[i], rule, key, i);
    }
  }

  size_t rows() const { return rows_.size(); }

 private:
  struct Row {
    std::vector<float> weights, first, second;
    uint32_t updates;
  };

  std::vector<float> Initial(uint64_t key) const {
    std::vector<float> weights;
    if (options_.initial_bound == 0) return std::vector<float>(options_.dimension);
    for (int i = 0; i < options_.dimension; ++i) {
      const double part = PhiloxBlock(options_.seed, key, i / 4)[i % 4] / 256 / std::pow(2.0, 23) - 1;
      weights.push_back(static_cast<float>(std::floor((part + 1) * (1 << 23)) / (1 << 23) - 1) *
                        options_.initial_bound);
      if (!options_.is_bf16) continue;
      const double unit = Bf16Unit(weights.back());
      weights.back() = static_cast<float>(unit * std::nearbyint(static_cast<double>(weights.back()) / unit));
    }
    return weights;
  }

  // The distance between the two bf16 that are beside a weight.
  static double Bf16Unit(float weight) {
    return std::ldexp(1.0, weight == 0 ? -133 : std::max(std::ilogb(weight), -126) - 7);
  }

  float RoundAtRandom(float weight, const RowRule& rule, uint64_t key, int i) const {
    const uint32_t draw = row_loops::DrawOf(KeyHash(options_.secret).Of(key), rule.step);
    const double unit = Bf16Unit(weight), units = std::fabs(static_cast<double>(weight)) / unit;
    const double rounded = std::floor(units + row_loops::Noise(draw, i) / 65536.0);
    return std::copysign(static_cast<float>(rounded * unit), weight);
  }

  void UpdateOne(const RowRule& rule, float g, Row& row, int i) const {
    float& w = row.weights[i];
    float& a = row.first[i];
    float& b = row.second[i];
    switch (options_.formula) {
      case RowFormula::kSgd:
        w -= rule.update.learning_rate * g;
        return;
      case RowFormula::kAdaGrad:
        a += g * g;
        w -= rule.update.learning_rate * g / (std::sqrt(a) + rule.update.epsilon);
        return;
      case RowFormula::kRowWiseAdaGrad:
        w -= rule.update.learning_rate / (std::sqrt(row.first[0]) + rule.update.epsilon) * g;
        return;
      case RowFormula::kLazyAdam:
        a = rule.update.beta1 * a + rule.update.beta1_complement * g;
        b = rule.update.beta2 * b + rule.update.beta2_complement * (g * g);
        w -= rule.update.learning_rate * rule.corrections->first(row.updates) * a /
             (std::sqrt(b) * rule.corrections->second(row.updates) + rule.update.epsilon);
        return;
      case RowFormula::kFtrl: {
        const float sum = b + g * g;
        a += g - (std::sqrt(sum) - std::sqrt(b)) * (1 / rule.update.learning_rate) * w;
        b = sum;
        const float numerator = (a < 0 ? -rule.l1 : rule.l1) - a;
        w = numerator / ((rule.beta + std::sqrt(sum)) * (1 / rule.update.learning_rate) + rule.l2);
        if (std::fabs(a) <= rule.l1) w = 0;
        return;
      }
    }
  }

  const TableOptions options_;
  std::map<uint64_t, Row> rows_;
};

void ExpectSameBits(const std::vector<float>& a, const float* b) {
  ASSERT_EQ(std::memcmp(a.data(), b, a.size() * sizeof(float)), 0);
}

// Everything in the table.
std::vector<float> Contents(const Table& table, int row_floats) {
  std::vector<float> contents;
  for (uint32_t shard = 0; shard < Table::kShards; ++shard) {
    table.VisitRows({shard, Table::kShards}, [&](uint64_t key, absl::Span<const float> row, uint32_t step) {
      float words[3];
      std::memcpy(words, &key, sizeof(key));
      std::memcpy(words + 2, &step, sizeof(step));
      contents.insert(contents.end(), words, words + 3);
      EXPECT_EQ(row.size(), static_cast<size_t>(row_floats));
      contents.insert(contents.end(), row.begin(), row.end());
    });
  }
  return contents;
}

class TableTest : public testing::TestWithParam<std::tuple<RowFormula, int, bool>> {
 protected:
  TableOptions options() const { return Options(dimension(), formula(), std::get<2>(GetParam())); }
  RowFormula formula() const { return std::get<0>(GetParam()); }
  int dimension() const { return std::get<1>(GetParam()); }
  int row_floats() const { return dimension() + StateSize(formula(), dimension()); }
};

TEST_P(TableTest, DoesWhatAMapOfRowsDoes) {
  const auto table = Make(options());
  ModelTable model(options());
  Random random(1);
  for (uint32_t step = 0; step < 60; ++step) {
    // More and more keys, most of them new at first.
    const Batch batch = RandomBatch(*table, dimension(), 300 * (step + 1), 200, random);
    std::vector<float> weights(batch.gradients.size());
    ASSERT_TRUE(table->Lookup(batch.keys, weights.data()).ok());
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      ExpectSameBits(model.Read(batch.keys[i]), weights.data() + i * dimension());
    }
    EXPECT_EQ(table->rows(), static_cast<int64_t>(model.rows())) << "looking up adds nothing";
    ASSERT_TRUE(table->Apply(Rule(step), batch.keys, batch.gradients.data(), 0.25f).ok());
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      model.Update(Rule(step), batch.keys[i], batch.gradients.data() + i * dimension(), 0.25f);
    }
    EXPECT_EQ(table->rows(), static_cast<int64_t>(model.rows()));
  }
  size_t visited = 0;
  for (uint32_t shard = 0; shard < Table::kShards; ++shard) {
    table->VisitRows({shard, Table::kShards}, [&](uint64_t key, absl::Span<const float> row, uint32_t) {
      ExpectSameBits(model.Read(key), row.data());
      ++visited;
    });
  }
  EXPECT_EQ(visited, model.rows());
}

TEST_P(TableTest, EveryInstructionSetGivesTheSameBits) {
  const auto baseline = Make(options());
  const auto best = Make(options());
  baseline->UseIsa(Isa::kBaseline);
  Random random(2);
  for (int step = 0; step < 20; ++step) {
    const Batch batch = RandomBatch(*best, dimension(), 1000, 300, random);
    // Rows that are there, and at first most that are not.
    std::vector<float> read(batch.gradients.size()), read_by_baseline(batch.gradients.size());
    ASSERT_TRUE(best->Lookup(batch.keys, read.data()).ok());
    ASSERT_TRUE(baseline->Lookup(batch.keys, read_by_baseline.data()).ok());
    ExpectSameBits(read, read_by_baseline.data());
    for (Table* table : {baseline.get(), best.get()}) {
      ASSERT_TRUE(table->Apply(Rule(), batch.keys, batch.gradients.data(), 0.5f).ok());
    }
  }
  const std::vector<float> contents = Contents(*best, row_floats());
  ASSERT_EQ(contents.size(), Contents(*baseline, row_floats()).size());
  ExpectSameBits(contents, Contents(*baseline, row_floats()).data());
}

// As the shards of one table on several servers are.
TEST_P(TableTest, ABatchInPartsGivesTheSameBits) {
  const auto whole = Make(options());
  const auto parts = Make(options());
  Random random(3);
  for (int step = 0; step < 10; ++step) {
    const Batch batch = RandomBatch(*whole, dimension(), 5000, 500, random);
    ASSERT_TRUE(whole->Apply(Rule(), batch.keys, batch.gradients.data(), 1).ok());
    // From the last part to the first.
    const size_t third = batch.keys.size() / 3;
    for (const auto& [begin, end] :
         {std::pair(2 * third, batch.keys.size()), std::pair(third, 2 * third), std::pair(size_t{0}, third)}) {
      ASSERT_TRUE(parts
                      ->Apply(Rule(), absl::MakeConstSpan(batch.keys).subspan(begin, end - begin),
                              batch.gradients.data() + begin * dimension(), 1)
                      .ok());
    }
  }
  ExpectSameBits(Contents(*whole, row_floats()), Contents(*parts, row_floats()).data());
}

// In a table of a checkpoint: as many shards as the job has, keys ascending.
TEST_P(TableTest, RestoredRowsAndTheirNextUpdatesHaveTheSameBits) {
  constexpr uint32_t kCount = 4;
  const auto trained = Make(options());
  const auto restored = Make(options());
  EXPECT_EQ(trained->row_floats(), row_floats());
  Random random(7);
  const auto update = [&](Table* table, const Batch& batch) {
    ASSERT_TRUE(table->Apply(Rule(), batch.keys, batch.gradients.data(), 0.5f).ok());
  };
  for (int step = 0; step < 20; ++step) update(trained.get(), RandomBatch(*trained, dimension(), 2000, 300, random));
  for (const uint32_t shard : {2u, 0u, 3u, 1u}) {
    std::map<uint64_t, std::vector<float>> rows;
    trained->VisitRows({shard, kCount}, [&](uint64_t key, absl::Span<const float> row, uint32_t) {
      rows[key].assign(row.begin(), row.end());
    });
    std::vector<uint64_t> keys;
    std::vector<float> values;
    for (const auto& [key, row] : rows) {
      keys.push_back(key);
      values.insert(values.end(), row.begin(), row.end());
    }
    EXPECT_GT(keys.size(), 100u);
    const absl::Status status = restored->Restore({shard, kCount}, keys, values.data());
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(restored->rows(), trained->rows());
  for (int step = 0; step < 5; ++step) {
    ExpectSameBits(Contents(*trained, row_floats()), Contents(*restored, row_floats()).data());
    // Of new keys, too.
    const Batch batch = RandomBatch(*trained, dimension(), 10000, 300, random);
    update(trained.get(), batch);
    update(restored.get(), batch);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TableTest,
                         testing::Combine(testing::ValuesIn(kFormulas), testing::Values(1, 3, 8, 16, 21, 64),
                                          testing::Bool()));

TEST(TableErrorsTest, OptionsOutOfRangeAreNamed) {
  const auto expect = [](const TableOptions& options, const std::string& text) {
    const absl::Status status = Table::Create(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status.message().find(text), absl::string_view::npos) << status;
  };
  TableOptions options = Options(0, RowFormula::kSgd);
  expect(options, "table 'users': dimension: 0; 1 to 4096 is allowed");
  options.dimension = 4097;
  expect(options, "dimension: 4097");
  options = Options(16, RowFormula::kSgd);
  options.memory_bytes = 0;
  expect(options, "memory_bytes: 0; 1 to");
  options.memory_bytes = Table::kMostMemory + 1;
  expect(options, "memory_bytes: ");
  options = Options(16, RowFormula::kFtrl);
  options.initial_bound = 0.1f;
  expect(options, "initial_bound: 0.1; FTRL begins at 0");
  options = Options(16, RowFormula::kSgd);
  options.initial_bound = std::nanf("");
  expect(options, "initial_bound: nan");
}

TEST(TableErrorsTest, KeysOutOfOrderAreRefusedAndChangeNothing) {
  const auto table = Make(Options(2, RowFormula::kSgd));
  std::vector<uint64_t> keys = {table->hash().KeyOf(5), table->hash().KeyOf(4)};
  const std::vector<float> gradients(4, 1.0f);
  std::vector<float> weights(4);
  absl::Status status = table->Apply(Rule(), keys, gradients.data(), 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(" at 1 is out of order"), absl::string_view::npos) << status;
  EXPECT_EQ(table->Lookup(keys, weights.data()).code(), absl::StatusCode::kInvalidArgument);
  keys[1] = keys[0];
  status = table->Apply(Rule(), keys, gradients.data(), 1);
  EXPECT_NE(status.message().find(" at 1 comes twice"), absl::string_view::npos) << status;
  EXPECT_EQ(table->rows(), 0);
}

TEST(TableErrorsTest, NewRowsOverTheLimitAreRefusedAndOldOnesAreUpdated) {
  TableOptions options = Options(16, RowFormula::kAdaGrad);
  options.memory_bytes = int64_t{4} << 20;
  const auto table = Make(options);
  Random random(4);
  Batch last;
  absl::Status status;
  while (status.ok()) {
    last = RandomBatch(*table, 16, uint64_t{1} << 40, 1000, random);
    status = table->Apply(Rule(), last.keys, last.gradients.data(), 1);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("table 'users': 1000 new rows of 128 bytes; it has "), absl::string_view::npos)
      << status;
  const int64_t rows = table->rows();
  EXPECT_GT(rows, 15'000);
  std::vector<uint64_t> old;
  table->VisitRows({200, Table::kShards}, [&](uint64_t key, auto, uint32_t) { old.push_back(key); });
  ASSERT_FALSE(old.empty());
  std::sort(old.begin(), old.end(), [&](uint64_t a, uint64_t b) { return table->hash().Of(a) < table->hash().Of(b); });
  EXPECT_TRUE(table->Apply(Rule(), old, last.gradients.data(), 1).ok());
  EXPECT_EQ(table->rows(), rows);
}

class TableRestoreTest : public testing::Test {
 protected:
  // Of the first shard of 8.
  std::vector<uint64_t> Keys(std::vector<uint64_t> hashes) {
    for (uint64_t& hash : hashes) hash = table_->hash().KeyOf(hash);
    return hashes;
  }
  void ExpectRefusal(const std::vector<uint64_t>& keys, TableShard shard, absl::StatusCode code,
                     const std::string& text) {
    const std::vector<float> rows(keys.size() * table_->row_floats(), 1.0f);
    const int64_t before = table_->rows();
    const absl::Status status = table_->Restore(shard, keys, rows.data());
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(text), absl::string_view::npos) << status;
    EXPECT_EQ(table_->rows(), before);
  }

  std::unique_ptr<Table> table_ = Make(Options(2, RowFormula::kAdaGrad));
};

TEST_F(TableRestoreTest, WhatIsRefusedChangesNothing) {
  const std::vector<float> rows(8, 2.0f);
  ASSERT_TRUE(table_->Restore({0, 8}, Keys({9, 5}), rows.data()).ok());
  EXPECT_TRUE(table_->Restore({1, 8}, {}, nullptr).ok());
  const auto expect = [&](const std::vector<uint64_t>& keys, TableShard shard, const std::string& text) {
    ExpectRefusal(keys, shard, absl::StatusCode::kInvalidArgument, text);
  };
  expect(Keys({4, 3, 5}), {0, 8}, " at 2 has a row already");
  expect(Keys({4, 3, 4}), {0, 8}, " at 2 comes twice");
  expect(Keys({4, uint64_t{1} << 61, 3}), {0, 8}, " at 1 is not of shard 0 of 8");
  expect(Keys({4, 3}), {1, 8}, " at 1 is not of shard 1 of 8");
  expect(Keys({4, uint64_t{1} << 56}), {0, 256}, " at 1 is not of shard 0 of 256");
  EXPECT_TRUE(table_->Restore({0, 1}, Keys({~uint64_t{0}, 0}), rows.data()).ok());
  EXPECT_EQ(table_->rows(), 4);
}

TEST_F(TableRestoreTest, RowsOverTheLimitAreRefused) {
  TableOptions options = Options(2, RowFormula::kAdaGrad);
  options.memory_bytes = int64_t{1} << 20;
  table_ = Make(options);
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 80'000; ++i) hashes.push_back(i);
  ExpectRefusal(Keys(hashes), {0, 8}, absl::StatusCode::kResourceExhausted,
                "table 'users': 80000 new rows of 16 bytes; it has 0 rows");
}

TEST(TableMemoryTest, AnIndexAndWhatIsLeftOfCacheLinesAreAQuarterOfTheRows) {
  const auto table = Make(Options(16, RowFormula::kAdaGrad));
  Random random(5);
  for (int step = 0; step < 300; ++step) {
    const Batch batch = RandomBatch(*table, 16, uint64_t{1} << 40, 1000, random);
    ASSERT_TRUE(table->Apply(Rule(), batch.keys, batch.gradients.data(), 1).ok());
    if (step < 200) continue;
    const auto rows_bytes = static_cast<double>(table->rows() * table->row_bytes());
    EXPECT_LT(static_cast<double>(table->memory_bytes()), 1.29 * rows_bytes) << table->rows();
  }
}

TEST(TableTest, HashesStandForTheirKeys) {
  const auto by_key = Make(Options(7, RowFormula::kAdaGrad)), by_hash = Make(Options(7, RowFormula::kAdaGrad));
  Random random(8);
  for (int step = 0; step < 5; ++step) {
    const Batch batch = RandomBatch(*by_key, 7, 500, 200, random);
    std::vector<uint64_t> hashes;
    for (const uint64_t key : batch.keys) hashes.push_back(by_key->hash().Of(key));
    ASSERT_TRUE(by_key->Apply(Rule(), batch.keys, batch.gradients.data(), 0.5f).ok());
    ASSERT_TRUE(by_hash->ApplyHashes(Rule(), hashes, batch.gradients.data(), 0.5f).ok());
    std::vector<float> expected(batch.gradients.size()), weights(batch.gradients.size());
    ASSERT_TRUE(by_key->Lookup(batch.keys, expected.data()).ok());
    by_hash->LookupHashes(hashes, weights.data());
    EXPECT_EQ(weights, expected);
  }
  EXPECT_EQ(by_hash->rows(), by_key->rows());
}

TEST(TableMemoryTest, WhatIsCountedIsWhatIsResident) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has memory of its own for every byte";
#endif
  const auto table = Make(Options(16, RowFormula::kAdaGrad));
  // Of all batches, so that nothing else takes memory while rows do.
  std::vector<uint64_t> hashes(1'000'000);
  Random random(7);
  for (uint64_t& hash : hashes) hash = random.Next64();
  std::sort(hashes.begin(), hashes.end());
  std::vector<uint64_t> keys(hashes.size() / 100);
  const std::vector<float> gradients(keys.size() * 16, 1.0f);
  std::vector<float> weights(gradients.size());
  const int64_t before = ResidentBytes();
  if (before == 0) GTEST_SKIP() << "the system does not say";
  for (size_t batch = 0; batch < 100; ++batch) {
    // Each has keys of all shards.
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = table->hash().KeyOf(hashes[100 * i + batch]);
    ASSERT_TRUE(table->Apply(Rule(), keys, gradients.data(), 1).ok());
    ASSERT_TRUE(table->Lookup(keys, weights.data()).ok());
  }
  ASSERT_EQ(table->rows(), 1'000'000);
  const auto counted = static_cast<double>(table->memory_bytes());
  EXPECT_NEAR(static_cast<double>(ResidentBytes() - before), counted, 0.05 * counted);
}

TEST(TableTest, InitialWeightsAreSpreadOverTheirRange) {
  const auto table = Make(Options(16, RowFormula::kSgd));
  Random random(6);
  const Batch batch = RandomBatch(*table, 16, uint64_t{1} << 40, 1000, random);
  std::vector<float> weights(batch.gradients.size());
  ASSERT_TRUE(table->Lookup(batch.keys, weights.data()).ok());
  double sum = 0;
  for (const float weight : weights) sum += static_cast<double>(weight);
  EXPECT_LT(*std::max_element(weights.begin(), weights.end()), 0.5f);
  EXPECT_GE(*std::min_element(weights.begin(), weights.end()), -0.5f);
  EXPECT_GT(*std::max_element(weights.begin(), weights.end()), 0.49f);
  EXPECT_NEAR(sum / static_cast<double>(weights.size()), 0, 0.01);
}

}  // namespace
}  // namespace rubato::server
