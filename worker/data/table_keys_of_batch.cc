#include "worker/data/table_keys_of_batch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/mutants.h"
#include "common/table_keys.h"

namespace rubato::worker {
namespace {

// An example's keys in row_of, and what the sum of their rows is multiplied with; 1 if they are not added.
struct Place {
  int64_t begin = 0;
  int64_t end = 0;
  float scale = 1;
};

Place PlaceOf(const TableSpec& table, const TableKeysOfBatch& keys, int64_t example) {
  if (!table.is_bag()) {
    const int64_t count = table.keys_per_example();
    return {.begin = example * count, .end = (example + 1) * count};
  }
  Place place = {.begin = example == 0 ? 0 : keys.ends[example - 1], .end = keys.ends[example]};
  const auto count = static_cast<float>(std::max<int64_t>(place.end - place.begin, 1));
  if (table.config.combine() == v1::TableConfig::MEAN) place.scale = 1 / count;
  if (table.config.combine() == v1::TableConfig::SQRT_N) place.scale = 1 / std::sqrt(count);
  return place;
}

}  // namespace

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
    const bool is_bag = spec.tables[number].is_bag(), ragged = is_bag && !batch.key_counts.empty();
    sorted.clear();
    for (int64_t example = 0; example < batch.examples; ++example) {
      const uint64_t* const keys = batch.keys.data() + example * stride + first;
      const int64_t present = ragged ? batch.key_counts[example * tables.size() + number] : count;
      for (int64_t i = 0; i < present; ++i) {
        sorted.emplace_back(hashes[number].Of(keys[i]), static_cast<uint32_t>(sorted.size()));
      }
      if (!batch.key_weights.empty()) {
        const float* const weights = batch.key_weights.data() + example * stride + first;
        table.weights.insert(table.weights.end(), weights, weights + present);
      }
      if (is_bag) table.ends.push_back(static_cast<uint32_t>(sorted.size()));
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
  const int64_t dimension = table.dimension();
  for (int64_t example = 0; example < examples; ++example) {
    const Place place = PlaceOf(table, keys, example);
    float* to = inputs + example * input_elements + table.input_offset;
    if (table.is_bag()) std::fill_n(to, dimension, 0.0f);
    for (int64_t i = place.begin; i < place.end; ++i) {
      const float* const row = rows + keys.row_of[i] * dimension;
      if (table.is_bag()) {
        const float weight = keys.weights.empty() ? 1 : keys.weights[i];
        for (int64_t k = 0; k < dimension; ++k) to[k] += weight * row[k];
      } else {
        to = std::copy_n(row, dimension, to);
      }
    }
    for (int64_t k = 0; k < dimension && place.scale != 1; ++k) to[k] *= place.scale;
  }
}

std::vector<float> SumRowGradients(const TableSpec& table, const TableKeysOfBatch& keys, const float* input_gradient,
                                   int64_t examples, int64_t input_elements) {
  const int64_t dimension = table.dimension();
  std::vector<float> sums(keys.keys.size() * dimension);
  for (int64_t example = 0; example < examples; ++example) {
    const Place place = PlaceOf(table, keys, example);
    const float* from = input_gradient + example * input_elements + table.input_offset;
    for (int64_t i = place.begin; i < place.end; ++i) {
      float* const sum = sums.data() + keys.row_of[i] * dimension;
      if (RUBATO_MUTANT(kRepeatedKeyLost)) std::fill_n(sum, dimension, 0.0f);
      const float scale = keys.weights.empty() ? place.scale : place.scale * keys.weights[i];
      for (int64_t k = 0; k < dimension; ++k) sum[k] += scale * from[k];
      if (!table.is_bag()) from += dimension;
    }
  }
  return sums;
}

}  // namespace rubato::worker
