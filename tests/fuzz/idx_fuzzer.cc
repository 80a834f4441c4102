// A pair of IDX files: what is accepted are examples that can all be read, with inputs and labels as the model expects.
//
// Input: the images, the labels, then two bytes: how long the labels are.
#include <algorithm>
#include <vector>

#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"
#include "worker/data/open_dataset.h"

namespace rubato {
namespace {

constexpr int32_t kClasses = 4;

ModelSpec MakeModel() {
  ModelSpec model;
  model.input = {2, 3};
  model.output = {kClasses};
  model.loss = v1::ModelConfig::SOFTMAX_CROSS_ENTROPY;
  return model;
}

void ReadAll(const Dataset& dataset) {
  RUBATO_FUZZ_CHECK(dataset.input_elements() == 6 && dataset.label_kind() == LabelKind::kClasses, "another shape");
  std::vector<float> inputs(dataset.input_elements());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    int32_t label = -1;
    const absl::Status status = dataset.Read(&i, 1, inputs.data(), &label, nullptr);
    RUBATO_FUZZ_CHECK(status.ok(), status);
    RUBATO_FUZZ_CHECK(label >= 0 && label < kClasses, label);
    for (const float input : inputs) RUBATO_FUZZ_CHECK(input >= 0 && input <= 1, input);
  }
}

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  Trailer trailer(data, size);
  const size_t wanted = trailer.TakeWord();
  const std::string both = trailer.Rest();
  const size_t labels_bytes = std::min(wanted, both.size());
  const MemoryFile images(both.substr(0, both.size() - labels_bytes));
  const MemoryFile labels(both.substr(both.size() - labels_bytes));
  v1::JobConfig config;
  config.mutable_data()->mutable_idx()->set_train_images(images.path());
  config.mutable_data()->mutable_idx()->set_train_labels(labels.path());
  config.mutable_data()->mutable_idx()->set_standard_deviation(1);
  const absl::StatusOr<std::shared_ptr<const Dataset>> dataset = OpenDataset(config, MakeModel(), Split::kTrain);
  if (dataset.ok()) ReadAll(**dataset);
  return 0;
}
