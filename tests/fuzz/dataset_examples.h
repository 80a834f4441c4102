#ifndef RUBATO_TESTS_FUZZ_DATASET_EXAMPLES_H_
#define RUBATO_TESTS_FUZZ_DATASET_EXAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "worker/data/open_dataset.h"

namespace rubato {

// All that a data set has of an example.
struct DatasetExample {
  int32_t label = 0;
  float target = 0;
  std::vector<float> features;
  std::vector<uint64_t> keys;
  std::vector<uint32_t> counts;
  std::vector<float> weights;

  bool operator==(const DatasetExample&) const = default;
};

inline std::vector<DatasetExample> ReadAll(const worker::Dataset& dataset) {
  std::vector<DatasetExample> examples(dataset.size());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    DatasetExample& example = examples[i];
    example.features.resize(dataset.input_elements());
    example.keys.resize(dataset.keys_per_example());
    example.counts.resize(dataset.key_counts_per_example());
    example.weights.resize(dataset.key_weights_per_example());
    const absl::Status status = dataset.Read(&i, 1, example.features.data(), &example.label, &example.target,
                                             example.keys.data(), example.counts.data(), example.weights.data());
    RUBATO_FUZZ_CHECK(status.ok(), status);
  }
  return examples;
}

// The training examples that a reader makes of its files, which are the same whether these are in memory or not. None:
// both ways it refuses them in the same words.
inline std::vector<DatasetExample> ReadBothWays(v1::JobConfig config, const ModelSpec& model) {
  const auto streamed = worker::OpenDataset(config, model, worker::Split::kTrain);
  config.mutable_data()->set_memory_bytes(1 << 30);
  const auto in_memory = worker::OpenDataset(config, model, worker::Split::kTrain);
  RUBATO_FUZZ_CHECK(streamed.status() == in_memory.status(), streamed.status());
  if (!streamed.ok()) return {};
  std::vector<DatasetExample> examples = ReadAll(**streamed);
  RUBATO_FUZZ_CHECK(examples == ReadAll(**in_memory), "other examples from the disk");
  return examples;
}

}  // namespace rubato

#endif  // RUBATO_TESTS_FUZZ_DATASET_EXAMPLES_H_
