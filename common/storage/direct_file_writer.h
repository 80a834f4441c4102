#ifndef RUBATO_COMMON_STORAGE_DIRECT_FILE_WRITER_H_
#define RUBATO_COMMON_STORAGE_DIRECT_FILE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rubato {

// Writes one large file that nobody reads soon, past the system's page cache if the file system can do that (O_DIRECT):
// copying gigabytes into the cache takes a core for seconds, and throws out what others have there. Errors are the
// disk's, as FileWriter's. Not thread-safe.
class DirectFileWriter {
 public:
  // Empties a file that is there.
  static absl::StatusOr<std::unique_ptr<DirectFileWriter>> Create(const std::string& path);
  // A file that was not finished stays, incomplete.
  ~DirectFileWriter();
  DirectFileWriter(const DirectFileWriter&) = delete;
  DirectFileWriter& operator=(const DirectFileWriter&) = delete;

  // A large array (kLargeArrayBytes) that starts at a whole block, in memory and in the file, is written from where it
  // is; everything else is copied. After an error the file's contents are undefined and every later call fails with the
  // same error.
  absl::Status Write(const void* data, size_t bytes);
  // Writes what is left, waits until all of it is on the disk, and closes. The writer cannot be used afterwards.
  absl::Status Finish();

  // What Write was given so far.
  uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  struct Free {
    void operator()(char* buffer) const { std::free(buffer); }
  };

  DirectFileWriter(std::string path, int descriptor);
  // The buffer, and what is to follow it.
  absl::Status WriteBuffer(const char* more = nullptr, size_t bytes = 0);
  // Writes by way of the page cache from now on.
  absl::Status LeaveDirect();

  const std::string path_;
  int descriptor_;
  uint64_t bytes_ = 0;
  // Aligned as direct writes need it.
  const std::unique_ptr<char, Free> buffer_;
  size_t filled_ = 0;
  absl::Status status_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_DIRECT_FILE_WRITER_H_
