// LIBSVM's format: what is accepted are examples that can all be read, with labels, features, keys and weights as the
// model expects, and the same whether the file is in memory or not.
//
// Input: the file, then one byte: the loss, whether there is a label_over, whether there are tables, and the first key.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"
#include "worker/data/open_dataset.h"

namespace rubato {
namespace {

constexpr int64_t kFeatures = 2, kPlaces = 3, kTables = 2, kKeys = kTables * kPlaces;

ModelSpec MakeModel(uint8_t choice) {
  constexpr v1::ModelConfig::Loss kLosses[] = {v1::ModelConfig::SOFTMAX_CROSS_ENTROPY,
                                               v1::ModelConfig::BINARY_CROSS_ENTROPY,
                                               v1::ModelConfig::MEAN_SQUARED_ERROR};
  ModelSpec model;
  model.features = {kFeatures};
  model.loss = kLosses[choice % 3];
  model.output = {choice % 3 == 0 ? 3 : 1};
  if (choice / 6 % 2 == 1) model.tables.resize(kTables);
  for (TableSpec& table : model.tables) {
    table.config.set_keys_per_example(kPlaces);
    table.config.set_combine(v1::TableConfig::SUM);
  }
  return model;
}

v1::JobConfig MakeConfig(const std::string& path, uint8_t choice) {
  v1::JobConfig config;
  v1::LibsvmData* const libsvm = config.mutable_data()->mutable_libsvm();
  libsvm->add_train_paths(path);
  if (choice / 3 % 2 == 1) libsvm->set_label_over(0);
  libsvm->set_first_key(choice / 12 % (kFeatures + 2));
  return config;
}

struct Example {
  int32_t label = 0;
  float target = 0;
  std::vector<float> features = std::vector<float>(kFeatures);
  std::vector<uint64_t> keys = std::vector<uint64_t>(kKeys);
  std::vector<uint32_t> counts = std::vector<uint32_t>(kTables);
  std::vector<float> weights = std::vector<float>(kKeys);

  bool operator==(const Example&) const = default;
};

std::vector<Example> ReadAll(const worker::Dataset& dataset) {
  std::vector<Example> examples(dataset.size());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    Example& example = examples[i];
    const absl::Status status = dataset.Read(&i, 1, example.features.data(), &example.label, &example.target,
                                             example.keys.data(), example.counts.data(), example.weights.data());
    RUBATO_FUZZ_CHECK(status.ok(), status);
  }
  return examples;
}

void CheckExample(const Example& example, const ModelSpec& model, uint64_t first_key) {
  const int64_t classes = std::max<int64_t>(model.output[0], 2);
  RUBATO_FUZZ_CHECK(example.label >= 0 && example.label < classes, example.label);
  RUBATO_FUZZ_CHECK(std::isfinite(example.target), example.target);
  for (const float feature : example.features) RUBATO_FUZZ_CHECK(std::isfinite(feature), feature);
  const uint32_t count = example.counts[0];
  RUBATO_FUZZ_CHECK(count <= (model.tables.empty() ? 0 : kPlaces) && count == example.counts[1], count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t key = example.keys[i];
    RUBATO_FUZZ_CHECK(key >= first_key && (i == 0 || key > example.keys[i - 1]), key);
    RUBATO_FUZZ_CHECK(key == example.keys[kPlaces + i], key);
    const float weight = example.weights[i];
    RUBATO_FUZZ_CHECK(std::isfinite(weight) && weight != 0 && weight == example.weights[kPlaces + i], weight);
  }
}

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  Trailer trailer(data, size);
  const uint8_t choice = trailer.TakeByte();
  const MemoryFile file(trailer.Rest());
  const ModelSpec model = MakeModel(choice);
  v1::JobConfig config = MakeConfig(file.path(), choice);
  const auto streamed = worker::OpenDataset(config, model, worker::Split::kTrain);
  config.mutable_data()->set_memory_bytes(1 << 30);
  const auto in_memory = worker::OpenDataset(config, model, worker::Split::kTrain);
  RUBATO_FUZZ_CHECK(streamed.status() == in_memory.status(), streamed.status());
  if (!streamed.ok()) return 0;
  const std::vector<Example> examples = ReadAll(**streamed);
  RUBATO_FUZZ_CHECK(examples == ReadAll(**in_memory), "other examples from the disk");
  for (const Example& example : examples) CheckExample(example, model, config.data().libsvm().first_key());
  return 0;
}
