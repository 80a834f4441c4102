#ifndef RUBATO_WORKER_DATA_BYTE_FILE_H_
#define RUBATO_WORKER_DATA_BYTE_FILE_H_

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rubato::worker {

// A file that is read once, from its start to its end. A gzip file (whatever its name) gives its uncompressed bytes.
// Not thread-safe.
class ByteFile {
 public:
  // NotFound, PermissionDenied, ... with the path.
  static absl::StatusOr<std::unique_ptr<ByteFile>> Open(const std::string& path);
  ~ByteFile();
  ByteFile(const ByteFile&) = delete;
  ByteFile& operator=(const ByteFile&) = delete;

  // Reads `size` bytes and returns how many there were: fewer only at the end of the file. DataLoss if a gzip file
  // is damaged or cut short; another code if the system cannot read.
  absl::StatusOr<int64_t> Read(void* buffer, int64_t size);

  const std::string& path() const { return path_; }

 private:
  ByteFile(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  const gzFile file_;
};

// All bytes of a file. ResourceExhausted: they are more than `max_bytes`. Otherwise the errors of ByteFile.
absl::StatusOr<std::vector<uint8_t>> ReadWholeFile(const std::string& path, int64_t max_bytes);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_BYTE_FILE_H_
