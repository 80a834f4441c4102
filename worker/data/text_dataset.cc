#include "worker/data/text_dataset.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/byte_file.h"

namespace rubato::worker {
namespace {

constexpr int64_t kBytes = 256;
// So that windows of one byte can be counted.
constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

class TextDataset : public Dataset {
 public:
  TextDataset(Properties properties, std::vector<uint8_t> text)
      : Dataset(std::move(properties)), text_(std::move(text)) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float*) const override {
    const int64_t positions = input_elements();
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t* window = text_.data() + indices[i] * positions;
      std::copy_n(window, positions, inputs + i * positions);
      std::copy_n(window + 1, positions, classes + i * positions);
    }
    return absl::OkStatus();
  }

  const std::vector<uint8_t> text_;
};

absl::Status CheckModel(const ModelSpec& model) {
  if (model.input.size() == 1 && model.loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY && model.vocabulary >= kBytes &&
      model.output.size() == 2 && model.output[0] == model.input[0] && model.classes() >= kBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model: from ", ShapeText(model.input), " with a vocabulary of ", model.vocabulary, " to ",
                   ShapeText(model.output), "; expected with data.text: SOFTMAX_CROSS_ENTROPY from positions, with a ",
                   "vocabulary of at least 256, to positions x at least 256"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenTextDataset(const TextOptions& options, const ModelSpec& model) {
  RUBATO_RETURN_IF_ERROR(CheckModel(model));
  RUBATO_ASSIGN_OR_RETURN(std::vector<uint8_t> text, ReadWholeFile(options.path, kMaxSize));
  const int64_t positions = model.input[0];
  const auto held_out = static_cast<int64_t>(static_cast<double>(text.size()) * options.test_fraction);
  const auto border = text.end() - held_out;
  if (options.test) {
    text.erase(text.begin(), border);
  } else {
    text.erase(border, text.end());
  }
  const int64_t size = static_cast<int64_t>(text.size());
  if (size < positions + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.path, ": ", size, " bytes ", options.test ? "are held out" : "to train with",
        " (data.text.test_fraction: ", options.test_fraction, "); expected: at least ", positions + 1, ", one window"));
  }
  Dataset::Properties properties = {
      .size = (size - 1) / positions, .input_shape = model.input, .labels_per_example = positions};
  return std::make_shared<const TextDataset>(std::move(properties), std::move(text));
}

}  // namespace rubato::worker
