// A text as tokens: examples can all be read, an example's labels are its inputs moved by one, and nothing of the
// held-out part is in the other.
//
// Input: the file, then one byte: 256ths that are held out.
#include <cmath>
#include <vector>

#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"
#include "worker/data/open_dataset.h"

namespace rubato {
namespace {

constexpr int64_t kPositions = 5;

ModelSpec MakeModel() {
  ModelSpec model;
  model.input = {kPositions};
  model.output = {kPositions, 256};
  model.vocabulary = 256;
  model.loss = v1::ModelConfig::SOFTMAX_CROSS_ENTROPY;
  return model;
}

// How many bytes of the file the examples use.
int64_t ReadAll(const worker::Dataset& dataset) {
  RUBATO_FUZZ_CHECK(dataset.input_elements() == kPositions && dataset.labels_per_example() == kPositions,
                    "another shape");
  std::vector<float> inputs(kPositions);
  std::vector<int32_t> labels(kPositions);
  int32_t next = -1;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const absl::Status status = dataset.Read(&i, 1, inputs.data(), labels.data(), nullptr);
    RUBATO_FUZZ_CHECK(status.ok(), status);
    for (int64_t p = 0; p < kPositions; ++p) {
      RUBATO_FUZZ_CHECK(inputs[p] >= 0 && inputs[p] <= 255 && inputs[p] == std::floor(inputs[p]), inputs[p]);
      if (next >= 0) RUBATO_FUZZ_CHECK(static_cast<float>(next) == inputs[p], p);
      next = labels[p];
    }
  }
  return dataset.size() * kPositions + 1;
}

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  Trailer trailer(data, size);
  const double held_out = trailer.TakeByte() / 256.0;
  const std::string text = trailer.Rest();
  const MemoryFile file(text);
  v1::JobConfig config;
  config.mutable_data()->mutable_text()->set_path(file.path());
  config.mutable_data()->mutable_text()->set_test_fraction(held_out);
  int64_t bytes = 0;
  for (worker::Split split : {worker::Split::kTrain, worker::Split::kTest}) {
    const absl::StatusOr<std::shared_ptr<const worker::Dataset>> dataset =
        worker::OpenDataset(config, MakeModel(), split);
    if (dataset.ok()) bytes += ReadAll(**dataset);
  }
  // Gzip may have decompressed to more than the input has.
  const bool compressed = text.size() > 2 && text[0] == '\x1f' && text[1] == '\x8b';
  if (!compressed) RUBATO_FUZZ_CHECK(bytes <= static_cast<int64_t>(text.size()), bytes);
  return 0;
}
