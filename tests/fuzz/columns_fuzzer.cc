// Columns of text: what is accepted are examples that can all be read, with labels, features and keys as the model
// expects, and the same whether the file is in memory or not.
//
// Input: the file, then one byte: the loss and whether there is a label_over.
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

constexpr int64_t kFeatures = 2, kWords = 3, kKeys = 2 + kWords, kTables = 2;

ModelSpec MakeModel(uint8_t choice) {
  constexpr v1::ModelConfig::Loss kLosses[] = {v1::ModelConfig::SOFTMAX_CROSS_ENTROPY,
                                               v1::ModelConfig::BINARY_CROSS_ENTROPY,
                                               v1::ModelConfig::MEAN_SQUARED_ERROR};
  ModelSpec model;
  model.features = {kFeatures};
  model.loss = kLosses[choice % 3];
  model.output = {choice % 3 == 0 ? 3 : 1};
  model.tables.resize(kTables);
  model.tables[0].config.set_keys_per_example(kKeys - kWords);
  model.tables[1].config.set_keys_per_example(kWords);
  model.tables[1].config.set_combine(v1::TableConfig::SUM);
  return model;
}

v1::JobConfig MakeConfig(const std::string& path, uint8_t choice) {
  v1::JobConfig config;
  v1::ColumnsData* const columns = config.mutable_data()->mutable_columns();
  columns->add_train_paths(path);
  columns->set_separator(",");
  columns->set_label("y");
  if (choice / 3 % 2 == 1) columns->set_label_over(1.5);
  for (const bool log1p : {false, true}) {
    v1::FeatureColumn* const feature = columns->add_features();
    feature->set_column(log1p ? "b" : "a");
    feature->set_standard_deviation(2);
    feature->set_log1p(log1p);
  }
  for (const char* column : {"a", "c", "d"}) columns->add_keys()->add_columns(column);
  columns->mutable_keys(0)->set_bucket(0.5);
  columns->mutable_keys(1)->add_columns("d");
  columns->mutable_keys(2)->set_words(true);
  return config;
}

void CheckExample(const DatasetExample& example, const ModelSpec& model) {
  const int64_t classes = std::max<int64_t>(model.output[0], 2);
  RUBATO_FUZZ_CHECK(example.label >= 0 && example.label < classes, example.label);
  RUBATO_FUZZ_CHECK(std::isfinite(example.target), example.target);
  for (const float feature : example.features) RUBATO_FUZZ_CHECK(std::isfinite(feature), feature);
  RUBATO_FUZZ_CHECK(example.counts[0] == kKeys - kWords, example.counts[0]);
  RUBATO_FUZZ_CHECK(example.counts[1] <= kWords, example.counts[1]);
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
  for (const DatasetExample& example : ReadBothWays(config, model)) CheckExample(example, model);
  return 0;
}
