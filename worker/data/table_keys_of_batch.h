#ifndef RUBATO_WORKER_DATA_TABLE_KEYS_OF_BATCH_H_
#define RUBATO_WORKER_DATA_TABLE_KEYS_OF_BATCH_H_

#include <cstdint>
#include <vector>

#include "common/key_hash.h"
#include "common/model_spec.h"
#include "worker/data/prefetcher.h"

namespace rubato::worker {

// A batch's keys in one table.
struct TableKeysOfBatch {
  // Each once, in the order of their hashes.
  std::vector<uint64_t> keys;
  // Of the batch's keys in this table, example by example: which of these each is.
  std::vector<uint32_t> row_of;
  // What their rows are multiplied with; empty: 1.
  std::vector<float> weights;
  // Of a table with `combine`: where the keys of each example end in row_of. Otherwise empty, as all have as many.
  std::vector<uint32_t> ends;
};

std::vector<KeyHash> HashesOfTables(const ModelSpec& spec, uint64_t seed);

// By table. Pure, as below.
std::vector<TableKeysOfBatch> KeysOfBatch(const ModelSpec& spec, const std::vector<KeyHash>& hashes,
                                          const Batch& batch);

// Writes the examples' features to the beginnings of their inputs [examples, input], which get the model's size.
void PutFeatures(const ModelSpec& spec, const float* features, int64_t examples, std::vector<float>* inputs);

// Writes a table's rows, one for each of its keys, behind the examples' features in `inputs` [examples, input]. Rows
// that are combined are added, times their weights, in the order of the example's keys.
void PutRows(const TableSpec& table, const TableKeysOfBatch& keys, const float* rows, int64_t examples,
             int64_t input_elements, float* inputs);

// The gradients of rows, one for each key: the sum of those of `input_gradient` [examples, input] where the row is, or
// is a part, in the order of the examples. A key that an example has twice counts twice.
std::vector<float> SumRowGradients(const TableSpec& table, const TableKeysOfBatch& keys, const float* input_gradient,
                                   int64_t examples, int64_t input_elements);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_TABLE_KEYS_OF_BATCH_H_
