#ifndef RUBATO_WORKER_DATA_TESTING_TEST_FILES_H_
#define RUBATO_WORKER_DATA_TESTING_TEST_FILES_H_

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "worker/data/open_dataset.h"

namespace rubato::worker {

// Writes a file into the test's temporary directory and returns its path.
inline std::string WriteTestFile(const std::string& name, const std::string& bytes) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

inline std::string BigEndianWord(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// An IDX file of unsigned bytes.
inline std::string IdxBytes(const std::vector<uint32_t>& dimensions, const std::string& payload) {
  std::string bytes = BigEndianWord(0x0800 + static_cast<uint32_t>(dimensions.size()));
  for (uint32_t dimension : dimensions) bytes += BigEndianWord(dimension);
  return bytes + payload;
}

// Opens what `config` says twice, with the files in memory and without, and expects the same. Returns the latter.
inline absl::StatusOr<std::shared_ptr<const Dataset>> OpenBothWays(v1::JobConfig config, const ModelSpec& model,
                                                                   Split split = Split::kTrain) {
  config.mutable_data()->set_memory_bytes(1 << 30);
  const auto in_memory = OpenDataset(config, model, split);
  config.mutable_data()->set_memory_bytes(0);
  const auto streamed = OpenDataset(config, model, split);
  EXPECT_EQ(in_memory.status(), streamed.status());
  if (!in_memory.ok() || !streamed.ok()) return streamed.status();
  EXPECT_EQ((*in_memory)->size(), (*streamed)->size());
  return *streamed;
}

// As much of a model as the readers look at.
inline ModelSpec DataModel(Shape input, Shape output,
                           v1::ModelConfig::Loss loss = v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) {
  ModelSpec model;
  model.input = std::move(input);
  model.output = std::move(output);
  model.loss = loss;
  return model;
}

// The same of a model with tables of so many keys each, and two classes.
inline ModelSpec KeyedModel(int64_t features, const std::vector<int64_t>& keys) {
  ModelSpec model = DataModel({features}, {2});
  model.features = {features};
  for (const int64_t count : keys) {
    TableSpec table = {.input_offset = model.input[0]};
    table.config.set_keys_per_example(count);
    table.config.set_dimension(4);
    model.input[0] += 4 * count;
    model.tables.push_back(std::move(table));
  }
  return model;
}

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_TESTING_TEST_FILES_H_
