#include "common/storage/direct_file_writer.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/array_alignment.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// Large enough to keep a disk busy.
constexpr size_t kBufferBytes = size_t{4} << 20;

}  // namespace

DirectFileWriter::DirectFileWriter(std::string path, int descriptor, bool direct)
    : path_(std::move(path)),
      descriptor_(descriptor),
      direct_(direct),
      buffer_(static_cast<char*>(std::aligned_alloc(kDiskBlock, kBufferBytes))) {}

absl::StatusOr<std::unique_ptr<DirectFileWriter>> DirectFileWriter::Create(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  int descriptor = open(path.c_str(), kFlags | O_DIRECT, 0644);
  // File systems in memory have nothing but the page cache.
  const bool direct = descriptor >= 0 || errno != EINVAL;
  if (!direct) descriptor = open(path.c_str(), kFlags, 0644);
  if (descriptor < 0) return ErrnoError(errno, "cannot create", path);
  std::unique_ptr<DirectFileWriter> writer(new DirectFileWriter(path, descriptor, direct));
  if (writer->buffer_ == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory to write ", path));
  return writer;
}

DirectFileWriter::~DirectFileWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status DirectFileWriter::Open() {
  if (lost_) return absl::DataLossError(absl::StrCat(path_, " is lost"));
  if (finished_) return absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
  if (descriptor_ >= 0) return absl::OkStatus();
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC | (direct_ ? O_DIRECT : 0));
  if (descriptor_ >= 0) return absl::OkStatus();
  lost_ = errno == ENOENT;
  return ErrnoError(errno, "cannot open", path_);
}

absl::Status DirectFileWriter::Failed(int error, absl::string_view action) {
  close(descriptor_);
  descriptor_ = -1;
  return ErrnoError(error, action, path_);
}

absl::Status DirectFileWriter::Write(const void* data, size_t bytes) {
  RUBATO_RETURN_IF_ERROR(Open());
  const char* from = static_cast<const char*>(data);
  if (bytes >= kLargeArrayBytes && filled_ % kDiskBlock == 0 && reinterpret_cast<uintptr_t>(from) % kDiskBlock == 0) {
    const size_t whole = bytes / kDiskBlock * kDiskBlock;
    RUBATO_RETURN_IF_ERROR(WriteBuffer(from, whole));
    bytes_ += whole;
    from += whole;
    bytes -= whole;
  }
  while (bytes > 0) {
    if (filled_ == kBufferBytes) RUBATO_RETURN_IF_ERROR(WriteBuffer());
    const size_t taken = std::min(bytes, kBufferBytes - filled_);
    std::memcpy(buffer_.get() + filled_, from, taken);
    filled_ += taken;
    bytes_ += taken;
    from += taken;
    bytes -= taken;
  }
  return absl::OkStatus();
}

absl::Status DirectFileWriter::WriteBuffer(const char* more, size_t bytes) {
  iovec parts[] = {{buffer_.get(), filled_}, {const_cast<char*>(more), bytes}};
  // After an error all of it is written again.
  uint64_t at = written_;
  const uint64_t end = written_ + filled_ + bytes;
  while (at < end) {
    const ssize_t written = pwritev(descriptor_, parts, 2, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    // A file system that wants larger blocks, or one that opens such files and does not write them.
    if (written < 0 && errno == EINVAL && direct_) {
      RUBATO_RETURN_IF_ERROR(LeaveDirect());
      continue;
    }
    if (written < 0) return Failed(errno, "cannot write");
    at += static_cast<uint64_t>(written);
    if (at < end && at % kDiskBlock != 0) RUBATO_RETURN_IF_ERROR(LeaveDirect());
    for (size_t done = static_cast<size_t>(written); iovec & part : parts) {
      const size_t of_part = std::min(done, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + of_part;
      part.iov_len -= of_part;
      done -= of_part;
    }
  }
  written_ = end;
  filled_ = 0;
  return absl::OkStatus();
}

absl::Status DirectFileWriter::LeaveDirect() {
  direct_ = false;
  const int flags = fcntl(descriptor_, F_GETFL);
  if (flags < 0 || fcntl(descriptor_, F_SETFL, flags & ~O_DIRECT) != 0) return Failed(errno, "cannot write");
  return absl::OkStatus();
}

absl::Status DirectFileWriter::Finish() {
  RUBATO_RETURN_IF_ERROR(Open());
  if (filled_ % kDiskBlock != 0) RUBATO_RETURN_IF_ERROR(LeaveDirect());
  RUBATO_RETURN_IF_ERROR(WriteBuffer());
  if (fsync(descriptor_) != 0) {
    // The system does not say which of the bytes are gone, and a second fsync would not fail.
    lost_ = true;
    return Failed(errno, "cannot sync");
  }
  const int error = close(descriptor_) == 0 ? 0 : errno;
  descriptor_ = -1;
  finished_ = true;
  return error == 0 ? absl::OkStatus() : ErrnoError(error, "cannot close", path_);
}

}  // namespace rubato
