#include "worker/data/table_keys_of_batch.h"

#include <algorithm>
#include <utility>

#include "common/table_keys.h"

namespace rubato::worker {

std::vector<KeyHash> HashesOfTables(const ModelSpec& spec, uint64_t seed) {
  std::vector<KeyHash> hashes;
  for (size_t table = 0; table < spec.tables.size(); ++table) {
    hashes.push_back(HashOfTable(seed, static_cast<int>(table)));
  }
  return hashes;
}

std::vector<TableKeysOfBatch> KeysOfBatch(const ModelSpec& spec, const std::vector<KeyHash>& hashes,
                                          const Batch& batch) {
  std::vector<TableKeysOfBatch> tables(spec.tables.size());
  const int64_t stride = spec.keys_per_example();
  int64_t first = 0;
  std::vector<std::pair<uint64_t, uint32_t>> sorted;  // Hashes, and where they come from.
  for (size_t number = 0; number < tables.size(); ++number) {
    const int64_t count = spec.tables[number].keys_per_example();
    TableKeysOfBatch& table = tables[number];
    sorted.clear();
    for (int64_t example = 0; example < batch.examples; ++example) {
      const uint64_t* const keys = batch.keys.data() + example * stride + first;
      for (int64_t i = 0; i < count; ++i) {
        sorted.emplace_back(hashes[number].Of(keys[i]), static_cast<uint32_t>(sorted.size()));
      }
    }
    std::sort(sorted.begin(), sorted.end());
    table.row_of.resize(sorted.size());
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (i == 0 || sorted[i].first != sorted[i - 1].first) table.keys.push_back(hashes[number].KeyOf(sorted[i].first));
      table.row_of[sorted[i].second] = static_cast<uint32_t>(table.keys.size() - 1);
    }
    first += count;
  }
  return tables;
}

void PutFeatures(const ModelSpec& spec, const float* features, int64_t examples, std::vector<float>* inputs) {
  const int64_t input = NumElements(spec.input), count = NumElements(spec.features);
  inputs->resize(examples * input);
  for (int64_t example = 0; example < examples; ++example) {
    std::copy_n(features + example * count, count, inputs->data() + example * input);
  }
}

void PutRows(const TableSpec& table, const TableKeysOfBatch& keys, const float* rows, int64_t examples,
             int64_t input_elements, float* inputs) {
  const int64_t count = table.keys_per_example(), dimension = table.dimension();
  for (int64_t example = 0; example < examples; ++example) {
    float* const to = inputs + example * input_elements + table.input_offset;
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(rows + keys.row_of[example * count + i] * dimension, dimension, to + i * dimension);
    }
  }
}

std::vector<float> SumRowGradients(const TableSpec& table, const TableKeysOfBatch& keys, const float* input_gradient,
                                   int64_t examples, int64_t input_elements) {
  const int64_t count = table.keys_per_example(), dimension = table.dimension();
  std::vector<float> sums(keys.keys.size() * dimension);
  for (int64_t example = 0; example < examples; ++example) {
    const float* const from = input_gradient + example * input_elements + table.input_offset;
    for (int64_t i = 0; i < count; ++i) {
      float* const sum = sums.data() + keys.row_of[example * count + i] * dimension;
      for (int64_t k = 0; k < dimension; ++k) sum[k] += from[i * dimension + k];
    }
  }
  return sums;
}

}  // namespace rubato::worker
