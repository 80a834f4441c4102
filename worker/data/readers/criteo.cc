#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "worker/data/readers/readers.h"
#include "worker/data/stored_bytes.h"

namespace rubato::worker {
namespace {

constexpr int64_t kIntegers = 13, kCategories = 26, kColumns = 1 + kIntegers + kCategories;
constexpr int64_t kMaxBytes = int64_t{1} << 48;
constexpr int64_t kMaxExamples = std::numeric_limits<int32_t>::max();
// A file without line ends is none of this format; it need not be read to its end to say so.
constexpr size_t kMaxLineBytes = 1u << 20;
// Long enough to recognise what is wrong, short enough to read.
constexpr size_t kShownLetters = 40;
// Examples to each entry of a file's index: it takes a byte of memory for each example, and a read passes over up to
// seven lines.
constexpr int64_t kStride = 8;

struct Line {
  int32_t label = 0;
  // A missing one is -1.
  std::array<int64_t, kIntegers> integers;
  std::array<absl::string_view, kCategories> categories;
};

absl::Status BadField(absl::string_view field, int64_t column, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("column ", column, column == 0 ? " (the label)" : "", ": value \"",
                                                 absl::CHexEscape(field.substr(0, kShownLetters)),
                                                 "\"; allowed: ", allowed));
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

// FNV-1a (Fowler, Noll and Vo) over the category's number and its text, then the finalizer of MurmurHash3 (Appleby). It
// is a format (docs/formats.md): a table's rows are found again by it.
uint64_t CategoryKey(int64_t category, absl::string_view text) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t hash = (0xcbf29ce484222325 ^ static_cast<uint64_t>(category)) * kPrime;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * kPrime;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  return hash ^ (hash >> 33);
}

// Takes a line off the front of `text`, without its end.
absl::string_view TakeLine(absl::string_view* text) {
  const size_t length = std::min(text->find('\n'), text->size());
  absl::string_view line = text->substr(0, length);
  text->remove_prefix(std::min(length + 1, text->size()));
  absl::ConsumeSuffix(&line, "\r");
  return line;
}

struct CriteoFile {
  std::string path;
  std::unique_ptr<const StoredBytes> bytes;
  // The number of its first example among those of all files.
  int64_t first = 0;
  int64_t examples = 0;
  // Where every kStride-th example begins, then where the file ends.
  std::vector<int64_t> starts;
};

class CriteoDataset : public Dataset {
 public:
  CriteoDataset(Properties properties, std::vector<CriteoFile> files)
      : Dataset(std::move(properties)), files_(std::move(files)) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float*, uint64_t* keys,
                            uint32_t*) const override {
    std::vector<uint8_t> scratch;
    Line line;
    for (int64_t i = 0; i < n; ++i) {
      RUBATO_RETURN_IF_ERROR(ReadLine(indices[i], &scratch, &line));
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

  // The line's categories are in `scratch` or in the file's memory.
  absl::Status ReadLine(int64_t index, std::vector<uint8_t>* scratch, Line* line) const {
    const auto after = std::upper_bound(files_.begin(), files_.end(), index,
                                        [](int64_t i, const CriteoFile& file) { return i < file.first; });
    const CriteoFile& file = *std::prev(after);
    const int64_t entry = (index - file.first) / kStride;
    const int64_t begin = file.starts[entry], size = file.starts[entry + 1] - begin;
    RUBATO_ASSIGN_OR_RETURN(const uint8_t* bytes, file.bytes->Read(begin, size, scratch));
    absl::string_view text(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    for (int64_t to_pass = (index - file.first) % kStride; !text.empty();) {
      const absl::string_view one = TakeLine(&text);
      if (one.empty() || to_pass-- > 0) continue;
      if (ParseLine(one, line).ok()) return absl::OkStatus();
      break;
    }
    return absl::DataLossError(absl::StrCat(file.path, ": example ", index - file.first,
                                            " is not what it was when the file was opened; expected: no change"));
  }

  const std::vector<CriteoFile> files_;
};

// Goes through a file once: checks every line, and notes where examples begin.
class LineIndexer {
 public:
  explicit LineIndexer(CriteoFile* file) : file_(file) {}

  absl::Status Run() {
    const auto visit = [this](int64_t offset, const uint8_t* data, int64_t count) {
      text_.append(reinterpret_cast<const char*>(data), static_cast<size_t>(count));
      return TakeLines(offset + count);
    };
    RUBATO_RETURN_IF_ERROR(file_->bytes->Scan(0, visit));
    if (file_->examples == 0) {
      return absl::InvalidArgumentError(absl::StrCat(file_->path, ": no example; expected: 1 or more"));
    }
    file_->starts.push_back(file_->bytes->size());
    file_->starts.shrink_to_fit();
    return absl::OkStatus();
  }

 private:
  // Takes whole lines off the front of the text, which ends at byte `end`, and at the end of the file what is left.
  absl::Status TakeLines(int64_t end) {
    absl::string_view rest = text_;
    while (!rest.empty() && (end == file_->bytes->size() || rest.find('\n') != absl::string_view::npos)) {
      const int64_t begin = end - static_cast<int64_t>(rest.size());
      const absl::string_view line = TakeLine(&rest);
      ++lines_;
      if (line.empty()) continue;
      if (const absl::Status status = AddExample(line, begin); !status.ok()) {
        return Annotate(status, absl::StrCat(file_->path, ":", lines_));
      }
    }
    if (rest.size() > kMaxLineBytes) {
      return absl::InvalidArgumentError(absl::StrCat(file_->path, ":", lines_ + 1, ": a line of more than ",
                                                     kMaxLineBytes, " bytes; expected: columns separated by tabs"));
    }
    text_.erase(0, text_.size() - rest.size());
    return absl::OkStatus();
  }

  absl::Status AddExample(absl::string_view text, int64_t begin) {
    Line line;
    RUBATO_RETURN_IF_ERROR(ParseLine(text, &line));
    if (file_->first + file_->examples == kMaxExamples) {
      return absl::InvalidArgumentError("more than 2^31-1 examples");
    }
    if (file_->examples++ % kStride == 0) file_->starts.push_back(begin);
    return absl::OkStatus();
  }

  CriteoFile* const file_;
  // What is not yet a whole line.
  std::string text_;
  int64_t lines_ = 0;
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
  std::vector<CriteoFile> files;
  int64_t examples = 0;
  for (const std::string& path : paths) {
    CriteoFile file = {.path = path, .first = examples};
    RUBATO_ASSIGN_OR_RETURN(file.bytes, StoredBytes::OpenFile(path, request.memory_bytes(), kMaxBytes));
    RUBATO_RETURN_IF_ERROR(LineIndexer(&file).Run());
    examples += file.examples;
    files.push_back(std::move(file));
  }
  Dataset::Properties properties = {
      .size = examples, .input_shape = request.model.features, .keys_per_example = kCategories};
  return std::make_shared<const CriteoDataset>(std::move(properties), std::move(files));
}

}  // namespace rubato::worker
