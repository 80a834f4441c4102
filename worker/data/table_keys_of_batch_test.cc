#include "worker/data/table_keys_of_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "common/random.h"

namespace rubato::worker {
namespace {

constexpr int64_t kFeatures = 2;

ModelSpec Model() {
  ModelSpec spec;
  spec.features = {kFeatures};
  int64_t offset = kFeatures;
  for (const auto& [keys, dimension] : {std::pair<int64_t, int64_t>{2, 3}, {1, 4}}) {
    TableSpec& table = spec.tables.emplace_back();
    table.config.set_keys_per_example(keys);
    table.config.set_dimension(dimension);
    table.input_offset = offset;
    offset += keys * dimension;
  }
  spec.input = {offset};
  return spec;
}

Batch MakeBatch(int64_t examples, uint64_t keys) {
  Random random(3);
  Batch batch;
  batch.examples = examples;
  for (int64_t i = 0; i < examples * 3; ++i) batch.keys.push_back(random.Below(keys));
  for (int64_t i = 0; i < examples * kFeatures; ++i) batch.inputs.push_back(static_cast<float>(i));
  return batch;
}

TEST(TableKeysOfBatchTest, EachKeyOnceInTheOrderOfHashes) {
  const ModelSpec spec = Model();
  const std::vector<KeyHash> hashes = HashesOfTables(spec, 9);
  const Batch batch = MakeBatch(50, 20);
  const std::vector<TableKeysOfBatch> tables = KeysOfBatch(spec, hashes, batch);
  ASSERT_EQ(tables.size(), 2u);
  for (size_t table = 0; table < 2; ++table) {
    const std::vector<uint64_t>& keys = tables[table].keys;
    for (size_t i = 1; i < keys.size(); ++i) {
      EXPECT_LT(hashes[table].Of(keys[i - 1]), hashes[table].Of(keys[i]));
    }
  }
  for (int64_t example = 0; example < 50; ++example) {
    EXPECT_EQ(tables[0].keys[tables[0].row_of[example * 2]], batch.keys[example * 3]);
    EXPECT_EQ(tables[0].keys[tables[0].row_of[example * 2 + 1]], batch.keys[example * 3 + 1]);
    EXPECT_EQ(tables[1].keys[tables[1].row_of[example]], batch.keys[example * 3 + 2]);
  }
}

TEST(TableKeysOfBatchTest, RowsGoToTheirPlacesAndGradientsComeBack) {
  const ModelSpec spec = Model();
  const Batch batch = MakeBatch(30, 7);
  const std::vector<TableKeysOfBatch> tables = KeysOfBatch(spec, HashesOfTables(spec, 9), batch);
  std::vector<float> inputs;
  PutFeatures(spec, batch.inputs.data(), batch.examples, &inputs);
  for (size_t t = 0; t < 2; ++t) {
    // A row's elements are its key, and after it their number.
    std::vector<float> rows;
    for (uint64_t key : tables[t].keys) {
      for (int64_t i = 0; i < spec.tables[t].dimension(); ++i) rows.push_back(static_cast<float>(i == 0 ? key : i));
    }
    PutRows(spec.tables[t], tables[t], rows.data(), batch.examples, spec.input[0], inputs.data());
  }
  for (int64_t example = 0; example < batch.examples; ++example) {
    const float* const input = inputs.data() + example * spec.input[0];
    const uint64_t* const keys = batch.keys.data() + example * 3;
    const std::vector<float> expected = {batch.inputs[example * 2],
                                         batch.inputs[example * 2 + 1],
                                         static_cast<float>(keys[0]),
                                         1,
                                         2,
                                         static_cast<float>(keys[1]),
                                         1,
                                         2,
                                         static_cast<float>(keys[2]),
                                         1,
                                         2,
                                         3};
    EXPECT_EQ(std::vector<float>(input, input + spec.input[0]), expected);
  }
  // The gradient of each input is 1, so that of a row counts where it is.
  const std::vector<float> ones(inputs.size(), 1);
  for (size_t t = 0; t < 2; ++t) {
    const std::vector<float> sums =
        SumRowGradients(spec.tables[t], tables[t], ones.data(), batch.examples, spec.input[0]);
    std::vector<float> counts(tables[t].keys.size());
    for (uint32_t row : tables[t].row_of) ++counts[row];
    for (size_t row = 0; row < counts.size(); ++row) {
      EXPECT_EQ(sums[row * spec.tables[t].dimension()], counts[row]);
    }
  }
}

// Two tables of bags around one without, and three examples: of two keys and one, one twice, and none and two.
class BagsOfBatchTest : public ::testing::Test {
 protected:
  BagsOfBatchTest() {
    spec_.features = {1};
    int64_t offset = 1;
    for (int number = 0; number < 3; ++number) {
      TableSpec& table = spec_.tables.emplace_back();
      table.config.set_keys_per_example(number == 1 ? 1 : 2);
      table.config.set_dimension(2);
      if (number != 1) table.config.set_combine(v1::TableConfig::SUM);
      table.input_offset = offset;
      offset += table.input_elements();
    }
    spec_.input = {offset};
    batch_.examples = 3;
    batch_.inputs = {0.5f, 0.25f, 0.125f};
    batch_.keys = {1, 2, 30, 100, kUnread, 3, 3, 31, 101, 102, kUnread, kUnread, 30, 102, 100};
    batch_.key_counts = {2, 1, 1, 2, 1, 2, 0, 1, 2};
  }

  void SetCombine(v1::TableConfig::Combine combine) {
    spec_.tables[0].config.set_combine(combine);
    spec_.tables[2].config.set_combine(combine);
  }

  std::vector<TableKeysOfBatch> Keys() const { return KeysOfBatch(spec_, HashesOfTables(spec_, 9), batch_); }

  // The whole input, if the row of key k is {k, -k}.
  std::vector<float> Inputs() const {
    const std::vector<TableKeysOfBatch> tables = Keys();
    std::vector<float> inputs;
    PutFeatures(spec_, batch_.inputs.data(), batch_.examples, &inputs);
    for (size_t t = 0; t < tables.size(); ++t) {
      std::vector<float> rows;
      for (uint64_t key : tables[t].keys) {
        for (const float sign : {1.0f, -1.0f}) rows.push_back(sign * static_cast<float>(key));
      }
      PutRows(spec_.tables[t], tables[t], rows.data(), batch_.examples, spec_.input[0], inputs.data());
    }
    return inputs;
  }

  // By key, the first element of the gradient if that of example e's input is 10^e.
  std::map<uint64_t, float> Gradients(size_t table) const {
    const TableKeysOfBatch keys = Keys()[table];
    std::vector<float> gradient;
    for (const float value : {1.0f, 10.0f, 100.0f}) gradient.insert(gradient.end(), spec_.input[0], value);
    const std::vector<float> sums =
        SumRowGradients(spec_.tables[table], keys, gradient.data(), batch_.examples, spec_.input[0]);
    EXPECT_EQ(sums.size(), 2 * keys.keys.size());
    std::map<uint64_t, float> result;
    for (size_t i = 0; i < keys.keys.size(); ++i) result[keys.keys[i]] = sums[2 * i];
    return result;
  }

  static constexpr uint64_t kUnread = 999;
  ModelSpec spec_;
  Batch batch_;
};

TEST_F(BagsOfBatchTest, RowsAreAdded) {
  EXPECT_EQ(Inputs(), (std::vector<float>{0.5f,   3, -3, 30, -30, 100, -100,  //
                                          0.25f,  6, -6, 31, -31, 203, -203,  //
                                          0.125f, 0, 0,  30, -30, 202, -202}));
  EXPECT_EQ(Gradients(0), (std::map<uint64_t, float>{{1, 1}, {2, 1}, {3, 20}}));
  EXPECT_EQ(Gradients(1), (std::map<uint64_t, float>{{30, 101}, {31, 10}}));
  EXPECT_EQ(Gradients(2), (std::map<uint64_t, float>{{100, 101}, {101, 10}, {102, 110}}));
}

TEST_F(BagsOfBatchTest, MeansDivideByTheKeysOfTheExample) {
  SetCombine(v1::TableConfig::MEAN);
  EXPECT_EQ(Inputs(), (std::vector<float>{0.5f,   1.5f, -1.5f, 30, -30, 100,    -100,     //
                                          0.25f,  3,    -3,    31, -31, 101.5f, -101.5f,  //
                                          0.125f, 0,    0,     30, -30, 101,    -101}));
  EXPECT_EQ(Gradients(0), (std::map<uint64_t, float>{{1, 0.5f}, {2, 0.5f}, {3, 10}}));
  EXPECT_EQ(Gradients(2), (std::map<uint64_t, float>{{100, 51}, {101, 5}, {102, 55}}));
}

TEST_F(BagsOfBatchTest, SqrtNDividesByTheRootOfTheirNumber) {
  SetCombine(v1::TableConfig::SQRT_N);
  const float root = 1 / std::sqrt(2.0f);
  const std::vector<float> inputs = Inputs();
  EXPECT_EQ(inputs[1], 3 * root);
  EXPECT_EQ(inputs[5], 100);
  EXPECT_EQ(inputs[7 + 1], 6 * root);
  EXPECT_EQ(Gradients(0)[3], 10 * root + 10 * root);
}

TEST_F(BagsOfBatchTest, RowsAreMultipliedWithTheirWeights) {
  batch_.key_weights = {2, -1, 1, 0.5f, 3, 0.25f, 4, 1, -2, 1, 7, 7, 1, 8, 0};
  EXPECT_EQ(Inputs(), (std::vector<float>{0.5f,   0,      0,       30, -30, 50,   -50,  //
                                          0.25f,  12.75f, -12.75f, 31, -31, -100, 100,  //
                                          0.125f, 0,      0,       30, -30, 816,  -816}));
  EXPECT_EQ(Gradients(0), (std::map<uint64_t, float>{{1, 2}, {2, -1}, {3, 42.5f}}));
  EXPECT_EQ(Gradients(2), (std::map<uint64_t, float>{{100, 0.5f}, {101, -20}, {102, 810}}));
}

TEST_F(BagsOfBatchTest, WithoutCountsEachPlaceHasAKey) {
  batch_.key_counts.clear();
  EXPECT_EQ(Inputs()[5], 100 + kUnread);
  EXPECT_EQ(Keys()[0].ends, (std::vector<uint32_t>{2, 4, 6}));
}

TEST_F(BagsOfBatchTest, OfAnExampleWithoutKeysAreZerosAndKeepNothing) {
  batch_.key_counts = {0, 1, 0, 0, 1, 0, 0, 1, 0};
  const std::vector<float> inputs = Inputs();
  for (size_t example = 0; example < 3; ++example) {
    for (const size_t at : {1, 2, 5, 6}) EXPECT_EQ(inputs[7 * example + at], 0);
  }
  EXPECT_TRUE(Gradients(0).empty());
}

}  // namespace
}  // namespace rubato::worker
