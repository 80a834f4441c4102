// A file in CIFAR-10's format: what is accepted are whole records that can all be read, with classes of the model.
//
// Input: the file, then one byte: its lowest bit cuts the file in two, read one after the other.
#include <vector>

#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"
#include "worker/data/open_dataset.h"

namespace rubato {
namespace {

constexpr int32_t kClasses = 10;
constexpr size_t kRecord = 3073;

ModelSpec MakeModel() {
  ModelSpec model;
  model.input = {3, 32, 32};
  model.output = {kClasses};
  model.loss = v1::ModelConfig::SOFTMAX_CROSS_ENTROPY;
  return model;
}

void ReadAll(const Dataset& dataset) {
  RUBATO_FUZZ_CHECK(dataset.input_elements() == 3072 && dataset.label_kind() == LabelKind::kClasses, "another shape");
  RUBATO_FUZZ_CHECK(dataset.size() > 0, dataset.size());
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
  const bool two = (trailer.TakeByte() & 1) != 0;
  const std::string all = trailer.Rest();
  const size_t first_bytes = two && all.size() > kRecord ? kRecord : all.size();
  const MemoryFile first(all.substr(0, first_bytes)), second(all.substr(first_bytes));
  v1::JobConfig config;
  v1::CifarData* cifar = config.mutable_data()->mutable_cifar();
  cifar->add_train_paths(first.path());
  if (two) cifar->add_train_paths(second.path());
  cifar->add_mean(0);
  cifar->add_standard_deviation(1);
  const absl::StatusOr<std::shared_ptr<const Dataset>> dataset = OpenDataset(config, MakeModel(), Split::kTrain);
  if (dataset.ok()) ReadAll(**dataset);
  return 0;
}
