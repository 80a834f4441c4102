#ifndef RUBATO_COMMON_STORAGE_DIRECT_FILE_WRITER_H_
#define RUBATO_COMMON_STORAGE_DIRECT_FILE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rubato {

// Writes one large file that nobody reads soon, past the system's page cache if the file system can do that (O_DIRECT):
// copying gigabytes into the cache takes a core for seconds, and throws out what others have there. Errors are the
// disk's, as FileWriter's. After one the file is closed, and the next call opens it again and goes on where it was:
// what Write has taken is not lost, unless is_lost. Not thread-safe.
class DirectFileWriter {
 public:
  // Empties a file that is there.
  static absl::StatusOr<std::unique_ptr<DirectFileWriter>> Create(const std::string& path);
  // A file that was not finished stays, incomplete.
  ~DirectFileWriter();
  DirectFileWriter(const DirectFileWriter&) = delete;
  DirectFileWriter& operator=(const DirectFileWriter&) = delete;

  // Pieces that follow each other in the file. A large one (kLargeArrayBytes) that starts at a whole block, in memory
  // and in the file, is written from where it is, together with such neighbours: a disk takes a few MiB at a time with
  // half the processor's work that it takes for half a MiB. Everything else is copied. After an error bytes() says how
  // much was taken.
  absl::Status Write(absl::Span<const absl::string_view> pieces);
  // Writes what is left, waits until all of it is on the disk, and closes. Once that is done the writer cannot be used.
  absl::Status Finish();

  // What Write has taken so far.
  uint64_t bytes() const { return bytes_; }
  // What was taken is on the disk, or in the writer's buffer, and not in the page cache.
  bool is_direct() const { return direct_; }
  // The disk has not kept what it had taken, or somebody has removed the file; every call fails.
  bool is_lost() const { return lost_; }
  const std::string& path() const { return path_; }

 private:
  struct Free {
    void operator()(char* buffer) const { std::free(buffer); }
  };

  DirectFileWriter(std::string path, int descriptor, bool direct);
  absl::Status Open();
  // The buffer, and the whole blocks that are to follow it.
  absl::Status WriteBuffer(absl::Span<const absl::string_view> more = {});
  // What follows the buffer, which is then empty.
  absl::Status WriteInPlace(std::vector<absl::string_view>* blocks);
  absl::Status Copy(absl::string_view piece);
  // Writes by way of the page cache from now on.
  absl::Status LeaveDirect();
  // Closes the file, too.
  absl::Status Failed(int error, absl::string_view action);

  const std::string path_;
  int descriptor_;  // -1: closed.
  bool direct_;
  bool lost_ = false;
  bool finished_ = false;
  uint64_t bytes_ = 0;
  // Of them, those before the buffer's.
  uint64_t written_ = 0;
  // Aligned as direct writes need it.
  const std::unique_ptr<char, Free> buffer_;
  size_t filled_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_DIRECT_FILE_WRITER_H_
