#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/byte_pairs/blocks_of_pieces.h"
#include "worker/data/byte_pairs/byte_pairs.h"
#include "worker/data/readers/readers.h"
#include "worker/data/stored_bytes.h"

namespace rubato::worker {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 48;
constexpr int64_t kMaxExamples = std::numeric_limits<int32_t>::max();

// Tokens one after another, each of sizeof(Token) bytes, of which an example is a window.
template <typename Token>
class TextDataset : public Dataset {
 public:
  // The examples begin at token `first`.
  TextDataset(Properties properties, std::unique_ptr<const StoredBytes> tokens, int64_t first)
      : Dataset(std::move(properties)), tokens_(std::move(tokens)), first_(first) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float*, uint64_t*,
                            uint32_t*) const override {
    const int64_t positions = input_elements();
    std::vector<uint8_t> scratch;
    std::vector<Token> window(static_cast<size_t>(positions) + 1);
    for (int64_t i = 0; i < n; ++i) {
      const auto bytes = static_cast<int64_t>(window.size() * sizeof(Token));
      const int64_t offset = (first_ + indices[i] * positions) * static_cast<int64_t>(sizeof(Token));
      RUBATO_ASSIGN_OR_RETURN(const uint8_t* stored, tokens_->Read(offset, bytes, &scratch));
      std::memcpy(window.data(), stored, static_cast<size_t>(bytes));
      std::copy_n(window.begin(), positions, inputs + i * positions);
      std::copy_n(window.begin() + 1, positions, classes + i * positions);
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<const StoredBytes> tokens_;
  const int64_t first_;
};

absl::Status CheckModel(const ModelSpec& model, int64_t tokens, absl::string_view source) {
  if (model.input.size() == 1 && model.loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY && model.vocabulary >= tokens &&
      model.output.size() == 2 && model.output[0] == model.input[0] && model.classes() >= tokens) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "model: from ", ShapeText(model.input), " with a vocabulary of ", model.vocabulary, " to ",
      ShapeText(model.output), "; expected with ", source, ": SOFTMAX_CROSS_ENTROPY from positions, with a ",
      "vocabulary of at least ", tokens, ", to positions x at least ", tokens));
}

// The tokens of the bytes [begin, end), of two bytes each.
absl::StatusOr<std::unique_ptr<const StoredBytes>> EncodePart(const StoredBytes& text, int64_t begin, int64_t end,
                                                              const BytePairs& pairs, const ReaderRequest& request) {
  StoredBytesWriter writer(request.config.data().text().path(), request.memory_bytes());
  std::vector<uint16_t> tokens;
  RUBATO_RETURN_IF_ERROR(ForEachBlockOfPieces(text, begin, end, [&](absl::string_view block) {
    tokens.clear();
    pairs.Encode(block, [&](uint32_t token) { tokens.push_back(static_cast<uint16_t>(token)); });
    return writer.Append(tokens.data(), static_cast<int64_t>(tokens.size() * sizeof(tokens[0])));
  }));
  return writer.Finish();
}

// Windows of `text`'s tokens from `first` on, of which there are so many.
template <typename Token>
DatasetOr OpenWindows(const ReaderRequest& request, std::unique_ptr<const StoredBytes> text, int64_t first,
                      int64_t tokens) {
  const v1::TextData& config = request.config.data().text();
  const absl::string_view unit = config.byte_pairs().empty() ? "bytes" : "byte pairs";
  const int64_t positions = request.model.input[0];
  if (tokens < positions + 1) {
    return absl::InvalidArgumentError(absl::StrCat(config.path(), ": ", tokens, " ", unit, " ",
                                                   request.test ? "are held out" : "to train with",
                                                   " (data.text.test_fraction: ", config.test_fraction(),
                                                   "); expected: at least ", positions + 1, ", one window"));
  }
  const int64_t windows = (tokens - 1) / positions;
  if (windows > kMaxExamples) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.path(), ": ", windows, " windows of ", positions, " ", unit, "; expected: at most 2^31-1"));
  }
  Dataset::Properties properties = {
      .size = windows, .input_shape = request.model.input, .labels_per_example = positions};
  return std::make_shared<const TextDataset<Token>>(std::move(properties), std::move(text), first);
}

}  // namespace

// The bytes of a file as tokens of 0 to 255, or its byte pairs. Example i is the tokens from i * positions on:
// `positions` of them, the model's input, and for each the one that follows it as its class. What does not fill a last
// window is left out. Byte pairs are encoded here, once, and take two bytes each, in memory or in a temporary file, as
// their text does.
DatasetOr OpenText(const ReaderRequest& request) {
  const v1::TextData& config = request.config.data().text();
  if (config.path().empty()) return MissingSource("data.text.path");
  if (request.test && config.test_fraction() == 0) return MissingSource("data.text.test_fraction");
  std::optional<BytePairs> pairs;
  if (!config.byte_pairs().empty()) {
    RUBATO_ASSIGN_OR_RETURN(pairs, BytePairs::Load(config.byte_pairs()));
  }
  const int64_t tokens = pairs.has_value() ? pairs->size() : BytePairs::kBytes;
  RUBATO_RETURN_IF_ERROR(
      CheckModel(request.model, tokens,
                 pairs.has_value() ? absl::StrCat("the byte pairs of ", config.byte_pairs()) : "data.text"));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<const StoredBytes> text,
                          StoredBytes::OpenFile(config.path(), request.memory_bytes(), kMaxBytes));
  const auto held_out = static_cast<int64_t>(static_cast<double>(text->size()) * config.test_fraction());
  const int64_t border = text->size() - held_out;
  const int64_t begin = request.test ? border : 0, end = request.test ? text->size() : border;
  if (!pairs.has_value()) return OpenWindows<uint8_t>(request, std::move(text), begin, end - begin);
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<const StoredBytes> encoded, EncodePart(*text, begin, end, *pairs, request));
  const int64_t count = encoded->size() / static_cast<int64_t>(sizeof(uint16_t));
  return OpenWindows<uint16_t>(request, std::move(encoded), 0, count);
}

}  // namespace rubato::worker
