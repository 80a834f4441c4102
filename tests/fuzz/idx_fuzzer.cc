// A pair of IDX files: what is accepted are examples that can all be read, with inputs and labels as the model expects.
//
// Input: the images, the labels, then two bytes: how long the labels are.
#include <algorithm>

#include "proto/job_config.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/image_files.h"
#include "tests/fuzz/memory_file.h"
#include "worker/data/open_dataset.h"

namespace rubato {
namespace {

constexpr int32_t kClasses = 4;

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
  const ModelSpec model = ImageModel({2, 3}, kClasses);
  const absl::StatusOr<std::shared_ptr<const worker::Dataset>> dataset =
      worker::OpenDataset(config, model, worker::Split::kTrain);
  if (!dataset.ok()) return 0;
  ReadImages(**dataset, model);
  return 0;
}
