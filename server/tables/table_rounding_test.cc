// Tables whose weights are bf16, and rows that take less than a cache line.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "server/tables/table.h"

namespace rubato::server {
namespace {

constexpr int64_t kMemory = int64_t{1} << 28;

std::unique_ptr<Table> Make(TableOptions options) {
  options.name = "users";
  options.secret = 12;
  if (options.memory_bytes == 0) options.memory_bytes = kMemory;
  auto table = Table::Create(options);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

// In the order of their hashes.
std::vector<uint64_t> Keys(const Table& table, size_t count) {
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < count; ++i) keys.push_back(table.hash().KeyOf(i * (UINT64_MAX / count)));
  return keys;
}

// A weight of 1 has neighbours 2^-8 below and 2^-7 above: an update by a thousandth would be nothing if it were rounded
// to the nearest.
TEST(TableRoundingTest, SmallUpdatesAddUp) {
  constexpr int kDimension = 16, kSteps = 1000;
  constexpr size_t kKeys = 64;
  const auto table = Make({.dimension = kDimension, .is_bf16 = true});
  const std::vector<uint64_t> keys = Keys(*table, kKeys);
  const std::vector<float> ones(kKeys * kDimension, 1.0f);
  RowRule rule;
  rule.update.learning_rate = 1;
  ASSERT_TRUE(table->Apply(rule, keys, ones.data(), -1).ok());
  rule.update.learning_rate = 1e-3f;
  for (uint32_t step = 1; step <= kSteps; ++step) {
    rule.step = step;
    ASSERT_TRUE(table->Apply(rule, keys, ones.data(), -1).ok());
  }
  std::vector<float> weights(ones.size());
  ASSERT_TRUE(table->Lookup(keys, weights.data()).ok());
  // Each has gone from 1 to 2 in steps of 2^-7, of which its own number differs: by the root of 2^-7 * 1 in the mean
  // square.
  double sum = 0, squares = 0;
  for (const float weight : weights) {
    const auto off = static_cast<double>(weight) - 2;
    sum += off;
    squares += off * off;
  }
  const auto count = static_cast<double>(weights.size());
  EXPECT_NEAR(sum / count, 0, 0.015);
  EXPECT_NEAR(std::sqrt(squares / count), std::sqrt(std::ldexp(1.0, -7)), 0.02);
}

TEST(TableRoundingTest, WhatIsNotFiniteStaysThatAndWhatIsFiniteToo) {
  const auto table = Make({.dimension = 4, .is_bf16 = true});
  const std::vector<uint64_t> keys = Keys(*table, 1);
  const std::vector<float> gradients = {-3.4e38f, 3.4e38f, -INFINITY, NAN};
  RowRule rule;
  rule.update.learning_rate = 1;
  ASSERT_TRUE(table->Apply(rule, keys, gradients.data(), 1).ok());
  std::vector<float> weights(4);
  ASSERT_TRUE(table->Lookup(keys, weights.data()).ok());
  EXPECT_GT(weights[0], 3.38e38f);
  EXPECT_TRUE(std::isfinite(weights[0]));
  EXPECT_LT(weights[1], -3.38e38f);
  EXPECT_TRUE(std::isfinite(weights[1]));
  EXPECT_EQ(weights[2], INFINITY);
  EXPECT_TRUE(std::isnan(weights[3]));
}

TEST(TableRoundingTest, RestoredFloat32IsRoundedToTheNearest) {
  const auto table = Make({.dimension = 2, .formula = RowFormula::kRowWiseAdaGrad, .is_bf16 = true});
  const std::vector<float> row = {1 + std::ldexp(1.0f, -9), -1 - 3 * std::ldexp(1.0f, -9), 0.123456789f};
  ASSERT_TRUE(table->Restore({}, {7}, row.data()).ok());
  table->VisitRows({}, [](uint64_t key, absl::Span<const float> kept, uint32_t) {
    EXPECT_EQ(key, 7u);
    EXPECT_EQ(kept[0], 1);
    EXPECT_EQ(kept[1], -1 - std::ldexp(1.0f, -7));
    EXPECT_EQ(kept[2], 0.123456789f) << "what an algorithm keeps is float32";
  });
}

struct SmallRow {
  int dimension;
  RowFormula formula;
  bool is_bf16;
  int64_t row_bytes;
};

class SmallRowsTest : public testing::TestWithParam<SmallRow> {};

TEST_P(SmallRowsTest, ShareCacheLines) {
  const SmallRow& small = GetParam();
  const auto table = Make({.dimension = small.dimension, .formula = small.formula, .is_bf16 = small.is_bf16});
  ASSERT_EQ(table->row_bytes(), small.row_bytes);
  constexpr size_t kKeys = 200'000;
  const std::vector<uint64_t> keys = Keys(*table, kKeys);
  std::vector<float> gradients(kKeys * static_cast<size_t>(small.dimension));
  // Whole numbers, which bf16 has up to 256.
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i % 251);
  RowRule rule;
  rule.update.learning_rate = 1;
  ASSERT_TRUE(table->Apply(rule, keys, gradients.data(), -1).ok());
  std::vector<float> weights(gradients.size());
  ASSERT_TRUE(table->Lookup(keys, weights.data()).ok());
  if (small.formula == RowFormula::kSgd) {
    EXPECT_EQ(weights, gradients);
  }
  // The index takes up to 16 bytes over 0.6, and at first more.
  const auto rows = static_cast<int64_t>(kKeys);
  EXPECT_LT(table->memory_bytes(), rows * (small.row_bytes + 36));
  EXPECT_GE(table->memory_bytes(), rows * (small.row_bytes + 16));
}

INSTANTIATE_TEST_SUITE_P(
    All, SmallRowsTest,
    testing::Values(SmallRow{1, RowFormula::kSgd, false, 16}, SmallRow{4, RowFormula::kSgd, false, 16},
                    SmallRow{8, RowFormula::kSgd, true, 16}, SmallRow{8, RowFormula::kSgd, false, 32},
                    SmallRow{8, RowFormula::kAdaGrad, true, 64}, SmallRow{8, RowFormula::kRowWiseAdaGrad, true, 32},
                    SmallRow{16, RowFormula::kSgd, true, 32}, SmallRow{16, RowFormula::kAdaGrad, true, 128},
                    SmallRow{32, RowFormula::kSgd, true, 64}));

// 32 bits count all rows that there may be.
TEST(SmallRowsTest, TakeMoreInATableThatMayBecomeLarge) {
  EXPECT_EQ(Make({.dimension = 4, .memory_bytes = int64_t{20} << 30})->row_bytes(), 16);
  EXPECT_EQ(Make({.dimension = 4, .memory_bytes = int64_t{40} << 30})->row_bytes(), 32);
  EXPECT_EQ(Make({.dimension = 4, .memory_bytes = Table::kMostMemory})->row_bytes(), 64);
}

}  // namespace
}  // namespace rubato::server
