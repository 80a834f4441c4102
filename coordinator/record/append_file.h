#ifndef RUBATO_COORDINATOR_RECORD_APPEND_FILE_H_
#define RUBATO_COORDINATOR_RECORD_APPEND_FILE_H_

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato::coordinator {

// An error of the disk with the path and the system's reason, of errno's value `error`. ResourceExhausted: there is no
// room, so that it may be tried again when there is. Unavailable: anything else.
absl::Status DiskError(int error, absl::string_view path, absl::string_view what);

// fdatasync, or what tests have in its place.
using SyncFile = int (*)(int file);

// A file that grows by whole pieces: what cannot be written whole is taken back. Not thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto file, AppendFile::Open(path));
//   RUBATO_RETURN_IF_ERROR(file->Append(line));
class AppendFile {
 public:
  // Creates the file if there is none. Errors as of DiskError.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Open(const std::string& path, SyncFile sync = fdatasync);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // All of `bytes` at the end. On an error, as of DiskError, the file ends where it did, and the next call is a new
  // attempt.
  absl::Status Append(absl::string_view bytes);
  // Cuts the file to `size` bytes, at most those that it has. After an error the next Append begins with that.
  absl::Status Truncate(uint64_t size);
  // Replaces what is at `path`. SyncDirectory makes that last.
  absl::Status RenameTo(const std::string& path);
  // Waits until what was appended is on the disk. After an error, what was appended since the last success may be lost,
  // and has to be written again (Linux forgets what it could not write).
  absl::Status Sync();

  // Whether no name stands for the file any more: another one was put in its place.
  bool IsReplaced() const;
  // Of whole pieces.
  uint64_t size() const { return size_; }

 private:
  AppendFile(std::string path, int file, SyncFile sync) : path_(std::move(path)), file_(file), sync_(sync) {}

  std::string path_;
  const int file_;
  const SyncFile sync_;
  uint64_t size_ = 0;
  // A piece could be neither written nor taken back.
  bool torn_ = false;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_APPEND_FILE_H_
