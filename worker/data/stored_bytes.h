#ifndef RUBATO_WORKER_DATA_STORED_BYTES_H_
#define RUBATO_WORKER_DATA_STORED_BYTES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rubato::worker {

// A file descriptor that is closed at the end; -1: none.
class OwnedFile {
 public:
  explicit OwnedFile(int descriptor = -1) : descriptor_(descriptor) {}
  OwnedFile(OwnedFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OwnedFile();
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Bytes that are read at random: in memory or, if there are many, in a file. Immutable and thread-safe.
class StoredBytes {
 public:
  // The bytes of a file; of a gzip file (whatever its name) the uncompressed ones. Up to `memory_bytes` are held in
  // memory. More of them stay in the file, or go to a temporary one without a name if it is compressed.
  // ResourceExhausted: they are more than `max_bytes`. Otherwise the errors of ByteFile and StoredBytesWriter.
  static absl::StatusOr<std::unique_ptr<const StoredBytes>> OpenFile(const std::string& path, int64_t memory_bytes,
                                                                     int64_t max_bytes);

  int64_t size() const { return size_; }
  // The bytes [offset, offset + count), which are there: where they are, or in `scratch`, so long as neither changes.
  // DataLoss: the file has become shorter. Another code: the system cannot read it. Both name the file.
  absl::StatusOr<const uint8_t*> Read(int64_t offset, int64_t count, std::vector<uint8_t>* scratch) const;
  // Calls visit(offset, data, count) for blocks that follow each other from `offset` to the end. Errors of Read and of
  // `visit`, at the first of which it ends.
  absl::Status Scan(int64_t offset, absl::FunctionRef<absl::Status(int64_t, const uint8_t*, int64_t)> visit) const;

 private:
  friend class StoredBytesWriter;
  StoredBytes(std::string name, std::vector<uint8_t> memory, OwnedFile file, int64_t size)
      : name_(std::move(name)), memory_(std::move(memory)), file_(std::move(file)), size_(size) {}

  const std::string name_;  // For messages.
  const std::vector<uint8_t> memory_;
  const OwnedFile file_;  // None if the bytes are in memory.
  const int64_t size_;
};

// Makes StoredBytes from beginning to end. Not thread-safe.
class StoredBytesWriter {
 public:
  // `name` is for messages. What is more than `memory_bytes` goes to a file without a name in the system's directory
  // for temporary files (TMPDIR, or /tmp).
  StoredBytesWriter(std::string name, int64_t memory_bytes) : name_(std::move(name)), memory_bytes_(memory_bytes) {}

  // The temporary file's error, with its directory. The writer is of no use afterwards.
  absl::Status Append(const void* data, int64_t count);
  int64_t size() const { return size_; }
  // Ends the writer.
  std::unique_ptr<const StoredBytes> Finish();

 private:
  absl::Status MoveToFile();
  absl::Status Write(const void* data, int64_t count);

  std::string name_;
  const int64_t memory_bytes_;
  std::vector<uint8_t> memory_;
  OwnedFile file_;
  int64_t size_ = 0;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_STORED_BYTES_H_
