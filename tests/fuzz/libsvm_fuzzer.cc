// LIBSVM's format: what is accepted are examples that can all be read, with labels, features, keys and weights as the
// model expects, and the same whether the file is in memory or not.
//
// Input: the file, then one byte: the loss, whether there is a label_over, whether there are tables, and the first key.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "tests/fuzz/dataset_examples.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

namespace rubato {
namespace {

constexpr int64_t kFeatures = 2, kPlaces = 3, kTables = 2;

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

void CheckExample(const DatasetExample& example, const ModelSpec& model, uint64_t first_key) {
  const int64_t classes = std::max<int64_t>(model.output[0], 2);
  RUBATO_FUZZ_CHECK(example.label >= 0 && example.label < classes, example.label);
  RUBATO_FUZZ_CHECK(std::isfinite(example.target), example.target);
  for (const float feature : example.features) RUBATO_FUZZ_CHECK(std::isfinite(feature), feature);
  RUBATO_FUZZ_CHECK(example.counts.size() == model.tables.size(), example.counts.size());
  if (model.tables.empty()) return;
  const uint32_t count = example.counts[0];
  RUBATO_FUZZ_CHECK(count <= kPlaces && count == example.counts[1], count);
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
  const v1::JobConfig config = MakeConfig(file.path(), choice);
  for (const DatasetExample& example : ReadBothWays(config, model))
    CheckExample(example, model, config.data().libsvm().first_key());
  return 0;
}
