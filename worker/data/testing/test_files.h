#ifndef RUBATO_WORKER_DATA_TESTING_TEST_FILES_H_
#define RUBATO_WORKER_DATA_TESTING_TEST_FILES_H_

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/model_spec.h"

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

// As much of a model as the readers look at.
inline ModelSpec DataModel(Shape input, Shape output,
                           v1::ModelConfig::Loss loss = v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) {
  ModelSpec model;
  model.input = std::move(input);
  model.output = std::move(output);
  model.loss = loss;
  return model;
}

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_TESTING_TEST_FILES_H_
