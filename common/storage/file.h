#ifndef RUBATO_COMMON_STORAGE_FILE_H_
#define RUBATO_COMMON_STORAGE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace rubato {

// Files, with errors that say what was tried, on which path, and the system's reason. The code is the errno's canonical
// one: NotFound, AlreadyExists, PermissionDenied, ResourceExhausted (disk full), ...

// Such an error: "cannot open FILE", and the reason.
absl::Status ErrnoError(int error, absl::string_view action, absl::string_view path);

// A path's parts joined with one '/'.
std::string JoinPath(absl::string_view directory, absl::string_view name);

absl::StatusOr<std::string> ReadFile(const std::string& path);

// At most `bytes` from `offset` on; fewer if the file ends before.
absl::StatusOr<std::string> ReadFileRange(const std::string& path, uint64_t offset, size_t bytes);

// Writes <path>.tmp, syncs it to the disk and renames it: `path` holds the old contents or the new ones, never a part.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents);

// Creates the directory and its parents, and syncs those that they were created in. OK when it is there already.
absl::Status MakeDirectories(const std::string& path);

// Waits until the names in a directory are on the disk: files that were created, renamed and removed there.
absl::Status SyncDirectory(const std::string& path);

// The directory that a path is in; "." for a name alone.
std::string DirectoryOf(const std::string& path);

bool FileExists(const std::string& path);

// Its size.
absl::StatusOr<uint64_t> FileBytes(const std::string& path);

// When it was written last.
absl::StatusOr<absl::Time> FileTime(const std::string& path);

// Names (not paths) of the entries, sorted.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// OK when there is no such file.
absl::Status RemoveFile(const std::string& path);

// Moves `from` to `to` in one step, replacing it, and syncs the directory, so that the move outlives a power cut.
absl::Status RenameFile(const std::string& from, const std::string& to);

// A sequential writer with a buffer. Not thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto file, FileWriter::Create(path, FileWriter::kReplace));
//   RUBATO_RETURN_IF_ERROR(file->Write(bytes));
//   RUBATO_RETURN_IF_ERROR(file->Close());
class FileWriter {
 public:
  // What happens to a file that is there: emptied, or AlreadyExists.
  enum Mode { kReplace, kNew };

  static absl::StatusOr<std::unique_ptr<FileWriter>> Create(const std::string& path, Mode mode);
  // Writes what is buffered, as far as it goes. Call Close to learn of errors.
  ~FileWriter();

  // After an error the file's contents are undefined and every later call fails with the same error.
  absl::Status Write(absl::string_view bytes);
  absl::Status Write(const void* data, size_t bytes);
  // Hands everything to the operating system.
  absl::Status Flush();
  // Flushes, and waits until it is on the disk.
  absl::Status Sync();
  // Flushes and closes. The writer cannot be used afterwards.
  absl::Status Close();

  // Written so far, buffered bytes included.
  uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  FileWriter(std::string path, int descriptor);
  absl::Status WriteThrough(const char* data, size_t bytes);

  const std::string path_;
  int descriptor_;
  uint64_t bytes_ = 0;
  std::string buffer_;
  absl::Status status_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_FILE_H_
