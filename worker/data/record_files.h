#ifndef RUBATO_WORKER_DATA_RECORD_FILES_H_
#define RUBATO_WORKER_DATA_RECORD_FILES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/stored_bytes.h"

namespace rubato::worker {

// Files of text, one after another, whose records (lines, if nothing else) are read at random. Beside its bytes, which
// are in memory or on the disk, a file takes a byte of memory for each example. Immutable and thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto files, RecordFiles::Open(paths, format, memory_bytes, check));
//   RUBATO_ASSIGN_OR_RETURN(RecordFiles::Record record, files->Read(7, &scratch));
class RecordFiles {
 public:
  struct Record {
    // Without its line end, a line feed that a carriage return may stand before.
    absl::string_view text;
    // The file's place among the paths.
    size_t file = 0;
  };

  struct Format {
    // How long the first record of `text` is, up to its line feed; npos: it has not ended.
    std::function<size_t(absl::string_view text)> length = [](absl::string_view text) { return text.find('\n'); };
    // Begins after the first record, which is a header.
    bool header = false;
    // As in "columns separated by tabs", for the message of a record that does not end.
    std::string expected;
  };

  // Called with every record but empty ones, the header first. What it returns ends Open, with the path and line.
  using Check = std::function<absl::Status(const Record& record)>;

  // Goes through each file once. ResourceExhausted: more than 2^48 bytes. InvalidArgument: a file without an example,
  // or without a header; more than 2^31-1 examples in all; a record of over 1 MiB. Other errors of StoredBytes.
  static absl::StatusOr<std::unique_ptr<const RecordFiles>> Open(std::vector<std::string> paths, Format format,
                                                                 int64_t memory_bytes, const Check& check);

  // Examples of all files.
  int64_t size() const { return size_; }

  // The record of an example, which is there: in `scratch` or in the file's memory, so long as neither changes.
  // Changed, or errors of StoredBytes.
  absl::StatusOr<Record> Read(int64_t index, std::vector<uint8_t>* scratch) const;

  // DataLoss: an example's record is not what it was.
  absl::Status Changed(int64_t index) const;

 private:
  friend class RecordIndexer;

  struct File {
    std::string path;
    std::unique_ptr<const StoredBytes> bytes;
    // The number of its first example among those of all files.
    int64_t first = 0;
    int64_t examples = 0;
    // Where every so manieth example begins, then where the file ends.
    std::vector<int64_t> starts;
  };

  explicit RecordFiles(Format format) : format_(std::move(format)) {}

  size_t FileOf(int64_t index) const;

  const Format format_;
  std::vector<File> files_;
  int64_t size_ = 0;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_RECORD_FILES_H_
