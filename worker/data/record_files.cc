#include "worker/data/record_files.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace rubato::worker {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 48;
constexpr int64_t kMaxExamples = std::numeric_limits<int32_t>::max();
// A file without line ends is none of records; it need not be read to its end to say so.
constexpr size_t kMaxRecordBytes = 1u << 20;
// Examples to each entry of a file's index: it takes a byte of memory for each example, and a read passes over up to
// seven records.
constexpr int64_t kStride = 8;

// Takes a record of that length off the front of `text`, without its end.
absl::string_view TakeRecord(size_t length, absl::string_view* text) {
  length = std::min(length, text->size());
  absl::string_view record = text->substr(0, length);
  text->remove_prefix(std::min(length + 1, text->size()));
  absl::ConsumeSuffix(&record, "\r");
  return record;
}

}  // namespace

// Goes through a file once, and notes where its examples begin.
class RecordIndexer {
 public:
  RecordIndexer(const RecordFiles::Format& format, size_t number, const RecordFiles::Check& check,
                RecordFiles::File* file)
      : format_(format), number_(number), check_(check), file_(file), awaits_header_(format.header) {}

  absl::Status Run() {
    const auto visit = [this](int64_t offset, const uint8_t* data, int64_t count) {
      text_.append(reinterpret_cast<const char*>(data), static_cast<size_t>(count));
      return TakeRecords(offset + count);
    };
    RUBATO_RETURN_IF_ERROR(file_->bytes->Scan(0, visit));
    if (file_->examples == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_->path, ": no example; expected: ", format_.header ? "a header, and " : "", "1 or more"));
    }
    file_->starts.push_back(file_->bytes->size());
    file_->starts.shrink_to_fit();
    return absl::OkStatus();
  }

 private:
  // Takes whole records off the front of the text, which ends at byte `end`, and at the end of the file what is left.
  absl::Status TakeRecords(int64_t end) {
    absl::string_view rest = text_;
    while (!rest.empty()) {
      const size_t length = format_.length(rest);
      if (length == absl::string_view::npos && end != file_->bytes->size()) break;
      const int64_t begin = end - static_cast<int64_t>(rest.size());
      const int64_t line = line_;
      const absl::string_view taken = rest.substr(0, length == absl::string_view::npos ? length : length + 1);
      line_ += std::count(taken.begin(), taken.end(), '\n');
      const absl::string_view record = TakeRecord(length, &rest);
      if (record.empty()) continue;
      if (record.size() > kMaxRecordBytes) return TooLong(line);
      if (const absl::Status status = Add(record, begin); !status.ok()) {
        return Annotate(status, absl::StrCat(file_->path, ":", line));
      }
    }
    if (rest.size() > kMaxRecordBytes) return TooLong(line_);
    text_.erase(0, text_.size() - rest.size());
    return absl::OkStatus();
  }

  absl::Status TooLong(int64_t line) const {
    return absl::InvalidArgumentError(absl::StrCat(file_->path, ":", line, ": a line of more than ", kMaxRecordBytes,
                                                   " bytes; expected: ", format_.expected));
  }

  absl::Status Add(absl::string_view record, int64_t begin) {
    RUBATO_RETURN_IF_ERROR(check_({.text = record, .file = number_}));
    if (awaits_header_) {
      awaits_header_ = false;
      return absl::OkStatus();
    }
    if (file_->first + file_->examples == kMaxExamples) {
      return absl::InvalidArgumentError("more than 2^31-1 examples");
    }
    if (file_->examples++ % kStride == 0) file_->starts.push_back(begin);
    return absl::OkStatus();
  }

  const RecordFiles::Format& format_;
  const size_t number_;
  const RecordFiles::Check& check_;
  RecordFiles::File* const file_;
  bool awaits_header_;
  // What is not yet a whole record.
  std::string text_;
  // Where that begins.
  int64_t line_ = 1;
};

absl::StatusOr<std::unique_ptr<const RecordFiles>> RecordFiles::Open(std::vector<std::string> paths, Format format,
                                                                     int64_t memory_bytes, const Check& check) {
  std::unique_ptr<RecordFiles> files(new RecordFiles(std::move(format)));
  for (size_t number = 0; number < paths.size(); ++number) {
    File file = {.path = paths[number], .first = files->size_};
    RUBATO_ASSIGN_OR_RETURN(file.bytes, StoredBytes::OpenFile(file.path, memory_bytes, kMaxBytes));
    RUBATO_RETURN_IF_ERROR(RecordIndexer(files->format_, number, check, &file).Run());
    files->size_ += file.examples;
    files->files_.push_back(std::move(file));
  }
  return files;
}

size_t RecordFiles::FileOf(int64_t index) const {
  const auto after =
      std::upper_bound(files_.begin(), files_.end(), index, [](int64_t i, const File& file) { return i < file.first; });
  return static_cast<size_t>(after - files_.begin()) - 1;
}

absl::StatusOr<RecordFiles::Record> RecordFiles::Read(int64_t index, std::vector<uint8_t>* scratch) const {
  const size_t number = FileOf(index);
  const File& file = files_[number];
  const int64_t entry = (index - file.first) / kStride;
  const int64_t begin = file.starts[entry], size = file.starts[entry + 1] - begin;
  RUBATO_ASSIGN_OR_RETURN(const uint8_t* bytes, file.bytes->Read(begin, size, scratch));
  absl::string_view text(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  for (int64_t to_pass = (index - file.first) % kStride; !text.empty();) {
    const absl::string_view record = TakeRecord(format_.length(text), &text);
    if (!record.empty() && to_pass-- == 0) return Record{.text = record, .file = number};
  }
  return Changed(index);
}

absl::Status RecordFiles::Changed(int64_t index) const {
  const File& file = files_[FileOf(index)];
  return absl::DataLossError(absl::StrCat(file.path, ": example ", index - file.first,
                                          " is not what it was when the file was opened; expected: no change"));
}

}  // namespace rubato::worker
