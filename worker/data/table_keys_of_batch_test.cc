#include "worker/data/table_keys_of_batch.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace rubato::worker
