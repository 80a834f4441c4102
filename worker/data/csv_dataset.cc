#include "worker/data/csv_dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "worker/data/byte_file.h"

namespace rubato::worker {
namespace {

// Long enough to recognise what is wrong, short enough to read.
constexpr size_t kShownLetters = 40;

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ByteFile> file, ByteFile::Open(path));
  std::string text;
  for (;;) {
    const size_t done = text.size();
    const size_t step = std::max<size_t>(done, 1 << 20);
    text.resize(done + step);
    RUBATO_ASSIGN_OR_RETURN(const int64_t count, file->Read(text.data() + done, static_cast<int64_t>(step)));
    text.resize(done + count);
    if (static_cast<size_t>(count) < step) return text;
  }
}

class CsvDataset : public Dataset {
 public:
  CsvDataset(Properties properties, std::vector<float> inputs, std::vector<int32_t> classes, std::vector<float> targets)
      : Dataset(std::move(properties)),
        inputs_(std::move(inputs)),
        classes_(std::move(classes)),
        targets_(std::move(targets)) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes,
                            float* targets) const override {
    const int64_t elements = input_elements();
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(inputs_.data() + indices[i] * elements, elements, inputs + i * elements);
      if (label_kind() == LabelKind::kClasses) {
        classes[i] = classes_[indices[i]];
      } else {
        targets[i] = targets_[indices[i]];
      }
    }
    return absl::OkStatus();
  }

  const std::vector<float> inputs_;
  const std::vector<int32_t> classes_;
  const std::vector<float> targets_;
};

// Takes the file's lines one by one and collects the examples.
class CsvParser {
 public:
  CsvParser(const CsvOptions& options, const ModelSpec& model)
      : options_(options),
        columns_(NumElements(model.input) + 1),
        outputs_(NumElements(model.output)),
        targets_wanted_(model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR) {}

  absl::Status ParseAll(absl::string_view text) {
    absl::ConsumePrefix(&text, "\xef\xbb\xbf");
    while (!text.empty()) {
      ++line_;
      const size_t length = std::min(text.find('\n'), text.size());
      const absl::string_view line = absl::StripAsciiWhitespace(text.substr(0, length));
      text.remove_prefix(std::min(length + 1, text.size()));
      if (line.empty() || (options_.header && line_ == 1)) continue;
      RUBATO_RETURN_IF_ERROR(ParseLine(line));
    }
    if (size_ == 0) return absl::InvalidArgumentError(absl::StrCat(options_.path, ": no example; expected: 1 or more"));
    return absl::OkStatus();
  }

  std::shared_ptr<const Dataset> Finish(const Shape& input_shape) {
    Dataset::Properties properties = {.size = size_,
                                      .input_shape = input_shape,
                                      .label_kind = targets_wanted_ ? LabelKind::kTargets : LabelKind::kClasses,
                                      .target_elements = targets_wanted_ ? 1 : 0};
    return std::make_shared<const CsvDataset>(std::move(properties), std::move(inputs_), std::move(classes_),
                                              std::move(targets_));
  }

 private:
  absl::Status ParseLine(absl::string_view line) {
    const int64_t found = std::count(line.begin(), line.end(), ',') + 1;
    if (found != columns_) {
      return absl::InvalidArgumentError(
          absl::StrCat(options_.path, ":", line_, ": ", found, " columns; expected: ", columns_,
                       " (a label, and one for each of the model's ", columns_ - 1, " inputs)"));
    }
    if (size_ == std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat(options_.path, ":", line_, ": more than 2^31-1 examples"));
    }
    for (int64_t column = 0; column < columns_; ++column) {
      const size_t length = std::min(line.find(','), line.size());
      const absl::string_view field = absl::StripAsciiWhitespace(line.substr(0, length));
      line.remove_prefix(std::min(length + 1, line.size()));
      if (column == options_.label_column && !targets_wanted_) {
        RUBATO_RETURN_IF_ERROR(ParseClass(field, column));
      } else {
        RUBATO_RETURN_IF_ERROR(ParseNumber(field, column, column == options_.label_column ? &targets_ : &inputs_));
      }
    }
    ++size_;
    return absl::OkStatus();
  }

  absl::Status ParseClass(absl::string_view field, int64_t column) {
    int32_t label = 0;
    if (!absl::SimpleAtoi(field, &label) || label < 0 || label >= outputs_) {
      return BadField(field, column, absl::StrCat("a class from 0 to ", outputs_ - 1));
    }
    classes_.push_back(label);
    return absl::OkStatus();
  }

  absl::Status ParseNumber(absl::string_view field, int64_t column, std::vector<float>* values) {
    float value = 0;
    if (!absl::SimpleAtof(field, &value) || !std::isfinite(value)) return BadField(field, column, "a finite number");
    values->push_back(value);
    return absl::OkStatus();
  }

  absl::Status BadField(absl::string_view field, int64_t column, absl::string_view allowed) const {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.path, ":", line_, ": column ", column, column == options_.label_column ? " (the label)" : "",
        ": value \"", absl::CHexEscape(field.substr(0, kShownLetters)), "\"; allowed: ", allowed));
  }

  const CsvOptions& options_;
  const int64_t columns_;
  const int64_t outputs_;
  const bool targets_wanted_;
  int64_t line_ = 0;
  int64_t size_ = 0;
  std::vector<float> inputs_;
  std::vector<int32_t> classes_;
  std::vector<float> targets_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenCsvDataset(const CsvOptions& options, const ModelSpec& model) {
  RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadAll(options.path));
  CsvParser parser(options, model);
  RUBATO_RETURN_IF_ERROR(parser.ParseAll(text));
  return parser.Finish(model.input);
}

}  // namespace rubato::worker
