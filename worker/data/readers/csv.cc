#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "worker/data/byte_file.h"
#include "worker/data/readers/readers.h"
#include "worker/data/shown_field.h"
#include "worker/data/stored_bytes.h"

namespace rubato::worker {
namespace {

// A file without line ends is no CSV file; it need not be read to its end to say so.
constexpr size_t kMaxLineBytes = 64u << 20;
constexpr int64_t kBlock = 1 << 20;

// Examples as they were parsed: the inputs, then the label as an int32 or a float32.
class CsvDataset : public Dataset {
 public:
  CsvDataset(Properties properties, std::unique_ptr<const StoredBytes> records)
      : Dataset(std::move(properties)), records_(std::move(records)) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                            uint64_t*, uint32_t*) const override {
    const int64_t elements = input_elements(), bytes = 4 * (elements + 1);
    std::vector<uint8_t> scratch;
    for (int64_t i = 0; i < n; ++i) {
      RUBATO_ASSIGN_OR_RETURN(const uint8_t* record, records_->Read(indices[i] * bytes, bytes, &scratch));
      std::memcpy(inputs + i * elements, record, 4 * elements);
      void* const label = label_kind() == LabelKind::kClasses ? static_cast<void*>(classes + i) : targets + i;
      std::memcpy(label, record + 4 * elements, 4);
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<const StoredBytes> records_;
};

// Takes the file's lines one by one and collects the examples.
class CsvParser {
 public:
  CsvParser(const std::string& path, const ReaderRequest& request)
      : path_(path),
        options_(request.config.data().csv()),
        columns_(NumElements(request.model.input) + 1),
        classes_(request.model.classes()),
        targets_wanted_(request.model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR),
        records_(path, request.memory_bytes()) {}

  absl::Status ParseFile() {
    RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ByteFile> file, ByteFile::Open(path_));
    std::string text;
    for (int64_t count = kBlock; count == kBlock;) {
      const size_t left = text.size();
      if (left > kMaxLineBytes) {
        return absl::InvalidArgumentError(absl::StrCat(path_, ":", line_ + 1, ": a line of more than ", left,
                                                       " bytes; expected: numbers separated by commas"));
      }
      text.resize(left + kBlock);
      RUBATO_ASSIGN_OR_RETURN(count, file->Read(text.data() + left, kBlock));
      text.resize(left + count);
      RUBATO_RETURN_IF_ERROR(ParseLines(&text, count < kBlock));
    }
    if (size_ == 0) return absl::InvalidArgumentError(absl::StrCat(path_, ": no example; expected: 1 or more"));
    return absl::OkStatus();
  }

  DatasetOr Finish(const Shape& input_shape) {
    Dataset::Properties properties = {.size = size_,
                                      .input_shape = input_shape,
                                      .label_kind = targets_wanted_ ? LabelKind::kTargets : LabelKind::kClasses,
                                      .target_elements = targets_wanted_ ? 1 : 0};
    return std::make_shared<const CsvDataset>(std::move(properties), records_.Finish());
  }

 private:
  // Takes whole lines off the front of `text`, and at the end what is left.
  absl::Status ParseLines(std::string* text, bool end) {
    absl::string_view rest = *text;
    if (line_ == 0) absl::ConsumePrefix(&rest, "\xef\xbb\xbf");
    for (;;) {
      const size_t length = rest.find('\n');
      if (length == absl::string_view::npos && (!end || rest.empty())) break;
      ++line_;
      const absl::string_view line = absl::StripAsciiWhitespace(rest.substr(0, length));
      rest.remove_prefix(length == absl::string_view::npos ? rest.size() : length + 1);
      if (line.empty() || (options_.header() && line_ == 1)) continue;
      RUBATO_RETURN_IF_ERROR(ParseLine(line));
    }
    text->erase(0, text->size() - rest.size());
    return absl::OkStatus();
  }

  absl::Status ParseLine(absl::string_view line) {
    const int64_t found = std::count(line.begin(), line.end(), ',') + 1;
    if (found != columns_) {
      return absl::InvalidArgumentError(absl::StrCat(path_, ":", line_, ": ", found, " columns; expected: ", columns_,
                                                     " (a label, and one for each of the model's ", columns_ - 1,
                                                     " inputs)"));
    }
    if (size_ == std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat(path_, ":", line_, ": more than 2^31-1 examples"));
    }
    record_.clear();
    float label = 0;
    for (int64_t column = 0; column < columns_; ++column) {
      const size_t length = std::min(line.find(','), line.size());
      const absl::string_view field = absl::StripAsciiWhitespace(line.substr(0, length));
      line.remove_prefix(std::min(length + 1, line.size()));
      const bool is_label = column == options_.label_column();
      float value = 0;
      RUBATO_RETURN_IF_ERROR(is_label && !targets_wanted_ ? ParseClass(field, column, &value)
                                                          : ParseNumber(field, column, &value));
      if (is_label) {
        label = value;
      } else {
        record_.push_back(value);
      }
    }
    record_.push_back(label);
    ++size_;
    return records_.Append(record_.data(), static_cast<int64_t>(4 * record_.size()));
  }

  // The bits of an int32.
  absl::Status ParseClass(absl::string_view field, int64_t column, float* bits) {
    int32_t label = 0;
    if (!absl::SimpleAtoi(field, &label) || label < 0 || label >= classes_) {
      return BadField(field, column, absl::StrCat("a class from 0 to ", classes_ - 1));
    }
    std::memcpy(bits, &label, sizeof(label));
    return absl::OkStatus();
  }

  absl::Status ParseNumber(absl::string_view field, int64_t column, float* value) {
    if (!absl::SimpleAtof(field, value) || !std::isfinite(*value)) return BadField(field, column, "a finite number");
    return absl::OkStatus();
  }

  absl::Status BadField(absl::string_view field, int64_t column, absl::string_view allowed) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ":", line_, ": column ", column,
                                                   column == options_.label_column() ? " (the label)" : "", ": value ",
                                                   ShownField(field), "; allowed: ", allowed));
  }

  const std::string path_;
  const v1::CsvData& options_;
  const int64_t columns_;
  const int64_t classes_;
  const bool targets_wanted_;
  int64_t line_ = 0;
  int64_t size_ = 0;
  // The example at work.
  std::vector<float> record_;
  StoredBytesWriter records_;
};

}  // namespace

// A file of comma-separated numbers: one example a line, as many features as the model's input has elements. Blanks
// around numbers, carriage returns and empty lines are skipped. The label is a class number of the model's
// classes, or the one target of a model with a squared error. Errors are "<path>:<line>: ..." with the column, counted
// from 0.
DatasetOr OpenCsv(const ReaderRequest& request) {
  const v1::CsvData& csv = request.config.data().csv();
  const std::string& path = request.test ? csv.test_path() : csv.train_path();
  if (path.empty()) return MissingSource(request.test ? "data.csv.test_path" : "data.csv.train_path");
  CsvParser parser(path, request);
  RUBATO_RETURN_IF_ERROR(parser.ParseFile());
  return parser.Finish(request.model.input);
}

}  // namespace rubato::worker
