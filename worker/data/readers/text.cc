#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/readers/readers.h"
#include "worker/data/stored_bytes.h"

namespace rubato::worker {
namespace {

constexpr int64_t kBytes = 256;
constexpr int64_t kMaxBytes = int64_t{1} << 48;
constexpr int64_t kMaxExamples = std::numeric_limits<int32_t>::max();

class TextDataset : public Dataset {
 public:
  // The examples begin at byte `first`.
  TextDataset(Properties properties, std::unique_ptr<const StoredBytes> text, int64_t first)
      : Dataset(std::move(properties)), text_(std::move(text)), first_(first) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float*, uint64_t*,
                            uint32_t*) const override {
    const int64_t positions = input_elements();
    std::vector<uint8_t> scratch;
    for (int64_t i = 0; i < n; ++i) {
      RUBATO_ASSIGN_OR_RETURN(const uint8_t* window,
                              text_->Read(first_ + indices[i] * positions, positions + 1, &scratch));
      std::copy_n(window, positions, inputs + i * positions);
      std::copy_n(window + 1, positions, classes + i * positions);
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<const StoredBytes> text_;
  const int64_t first_;
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

// The bytes of a file as tokens of 0 to 255. Example i is the bytes from i * positions on: `positions` of them, the
// model's input, and for each the one that follows it as its class. What does not fill a last window is left out.
DatasetOr OpenText(const ReaderRequest& request) {
  const v1::TextData& config = request.config.data().text();
  if (config.path().empty()) return MissingSource("data.text.path");
  if (request.test && config.test_fraction() == 0) return MissingSource("data.text.test_fraction");
  RUBATO_RETURN_IF_ERROR(CheckModel(request.model));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<const StoredBytes> text,
                          StoredBytes::OpenFile(config.path(), request.memory_bytes(), kMaxBytes));
  const int64_t positions = request.model.input[0];
  const auto held_out = static_cast<int64_t>(static_cast<double>(text->size()) * config.test_fraction());
  const int64_t border = text->size() - held_out;
  const int64_t size = request.test ? held_out : border;
  if (size < positions + 1) {
    return absl::InvalidArgumentError(absl::StrCat(config.path(), ": ", size, " bytes ",
                                                   request.test ? "are held out" : "to train with",
                                                   " (data.text.test_fraction: ", config.test_fraction(),
                                                   "); expected: at least ", positions + 1, ", one window"));
  }
  const int64_t windows = (size - 1) / positions;
  if (windows > kMaxExamples) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.path(), ": ", windows, " windows of ", positions, " bytes; expected: at most 2^31-1"));
  }
  Dataset::Properties properties = {
      .size = windows, .input_shape = request.model.input, .labels_per_example = positions};
  return std::make_shared<const TextDataset>(std::move(properties), std::move(text), request.test ? border : 0);
}

}  // namespace rubato::worker
