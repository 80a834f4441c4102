#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/readers/readers.h"
#include "worker/data/record_files.h"
#include "worker/data/shown_field.h"
#include "worker/data/text_hash.h"

namespace rubato::worker {
namespace {

constexpr int64_t kIntegers = 13, kCategories = 26, kColumns = 1 + kIntegers + kCategories;

struct Line {
  int32_t label = 0;
  // A missing one is -1.
  std::array<int64_t, kIntegers> integers;
  std::array<absl::string_view, kCategories> categories;
};

absl::Status BadField(absl::string_view field, int64_t column, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("column ", column, column == 0 ? " (the label)" : "", ": value ",
                                                 ShownField(field), "; allowed: ", allowed));
}

absl::Status ParseLine(absl::string_view text, Line* line) {
  const int64_t found = std::count(text.begin(), text.end(), '\t') + 1;
  if (found != kColumns) {
    return absl::InvalidArgumentError(absl::StrCat(found, " columns; expected: ", kColumns,
                                                   " (a label, 13 integers and 26 categories, separated by tabs)"));
  }
  for (int64_t column = 0; column < kColumns; ++column) {
    const size_t length = std::min(text.find('\t'), text.size());
    const absl::string_view field = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (column == 0) {
      if (field != "0" && field != "1") return BadField(field, column, "0 or 1");
      line->label = field == "1" ? 1 : 0;
    } else if (column <= kIntegers) {
      int64_t& integer = line->integers[column - 1];
      if (field.empty()) {
        integer = -1;
      } else if (!absl::SimpleAtoi(field, &integer)) {
        return BadField(field, column, "an integer from -2^63 to 2^63-1, or nothing");
      }
    } else {
      line->categories[column - 1 - kIntegers] = field;
    }
  }
  return absl::OkStatus();
}

uint64_t CategoryKey(int64_t category, absl::string_view text) {
  TextHash hash;
  hash.Add(static_cast<uint64_t>(category));
  hash.Add(text);
  return hash.Finish();
}

class CriteoDataset : public Dataset {
 public:
  CriteoDataset(Properties properties, std::unique_ptr<const RecordFiles> files)
      : Dataset(std::move(properties)), files_(std::move(files)) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float*, uint64_t* keys,
                            uint32_t*) const override {
    std::vector<uint8_t> scratch;
    Line line;
    for (int64_t i = 0; i < n; ++i) {
      RUBATO_ASSIGN_OR_RETURN(const RecordFiles::Record record, files_->Read(indices[i], &scratch));
      if (!ParseLine(record.text, &line).ok()) return files_->Changed(indices[i]);
      classes[i] = line.label;
      for (const int64_t integer : line.integers) {
        *inputs++ = integer > 0 ? static_cast<float>(std::log1p(static_cast<double>(integer))) : 0.0f;
      }
      for (int64_t category = 0; category < kCategories; ++category) {
        *keys++ = CategoryKey(category, line.categories[category]);
      }
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<const RecordFiles> files_;
};

absl::Status CheckModel(const ModelSpec& model) {
  if (model.features != Shape{kIntegers}) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.input_shape: ", ShapeText(model.features), "; expected with data.criteo: ", kIntegers));
  }
  return CheckTwoClasses(model, "data.criteo");
}

}  // namespace

// Files in the format of the Criteo display advertising challenge: one example a line, of a label, 13 integers and 26
// categories, separated by tabs. Carriage returns at the end of lines and empty lines are skipped. Every line is
// checked when the file is opened, and parsed again whenever it is read. Beside its text, which is in memory or on the
// disk, a file takes a byte of memory for each example. Errors are "<path>:<line>: ..." with the column, counted from
// 0.
DatasetOr OpenCriteo(const ReaderRequest& request) {
  const v1::CriteoData& criteo = request.config.data().criteo();
  const auto& paths = request.test ? criteo.test_paths() : criteo.train_paths();
  if (paths.empty()) return MissingSource(request.test ? "data.criteo.test_paths" : "data.criteo.train_paths");
  RUBATO_RETURN_IF_ERROR(CheckModel(request.model));
  const auto check = [](const RecordFiles::Record& record) {
    Line line;
    return ParseLine(record.text, &line);
  };
  RUBATO_ASSIGN_OR_RETURN(auto files,
                          RecordFiles::Open({paths.begin(), paths.end()}, {.expected = "columns separated by tabs"},
                                            request.memory_bytes(), check));
  Dataset::Properties properties = {
      .size = files->size(), .input_shape = request.model.features, .keys_per_example = kCategories};
  return std::make_shared<const CriteoDataset>(std::move(properties), std::move(files));
}

}  // namespace rubato::worker
