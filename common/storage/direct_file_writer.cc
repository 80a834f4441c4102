#include "common/storage/direct_file_writer.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <utility>
#include <vector>

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

absl::Status DirectFileWriter::Write(absl::Span<const absl::string_view> pieces) {
  RUBATO_RETURN_IF_ERROR(Open());
  std::vector<absl::string_view> in_place;
  // What precedes a whole block ends with one.
  bool at_block = filled_ % kDiskBlock == 0;
  for (const absl::string_view piece : pieces) {
    size_t whole = 0;
    if (at_block && piece.size() >= kLargeArrayBytes && reinterpret_cast<uintptr_t>(piece.data()) % kDiskBlock == 0) {
      whole = piece.size() / kDiskBlock * kDiskBlock;
      in_place.push_back(piece.substr(0, whole));
    }
    if (whole == piece.size()) continue;
    RUBATO_RETURN_IF_ERROR(WriteInPlace(&in_place));
    RUBATO_RETURN_IF_ERROR(Copy(piece.substr(whole)));
    at_block = filled_ % kDiskBlock == 0;
  }
  return WriteInPlace(&in_place);
}

absl::Status DirectFileWriter::WriteInPlace(std::vector<absl::string_view>* blocks) {
  if (blocks->empty()) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(WriteBuffer(*blocks));
  for (const absl::string_view written : *blocks) bytes_ += written.size();
  blocks->clear();
  return absl::OkStatus();
}

absl::Status DirectFileWriter::Copy(absl::string_view piece) {
  while (!piece.empty()) {
    if (filled_ == kBufferBytes) RUBATO_RETURN_IF_ERROR(WriteBuffer());
    const size_t taken = piece.copy(buffer_.get() + filled_, kBufferBytes - filled_);
    filled_ += taken;
    bytes_ += taken;
    piece.remove_prefix(taken);
  }
  return absl::OkStatus();
}

absl::Status DirectFileWriter::WriteBuffer(absl::Span<const absl::string_view> more) {
  std::vector<iovec> parts = {{buffer_.get(), filled_}};
  uint64_t end = written_ + filled_;
  for (const absl::string_view piece : more) {
    parts.push_back({const_cast<char*>(piece.data()), piece.size()});
    end += piece.size();
  }
  // After an error all of it is written again.
  uint64_t at = written_;
  size_t first = 0;  // Of the parts that are not written yet.
  while (at < end) {
    const size_t count = std::min<size_t>(parts.size() - first, IOV_MAX);
    const ssize_t written = pwritev(descriptor_, &parts[first], static_cast<int>(count), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    // A file system that wants larger blocks, or one that opens such files and does not write them.
    if (written < 0 && errno == EINVAL && direct_) {
      RUBATO_RETURN_IF_ERROR(LeaveDirect());
      continue;
    }
    if (written < 0) return Failed(errno, "cannot write");
    at += static_cast<uint64_t>(written);
    if (at < end && at % kDiskBlock != 0) RUBATO_RETURN_IF_ERROR(LeaveDirect());
    for (size_t done = static_cast<size_t>(written); first < parts.size(); ++first) {
      iovec& part = parts[first];
      const size_t of_part = std::min(done, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + of_part;
      part.iov_len -= of_part;
      done -= of_part;
      if (part.iov_len > 0) break;
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
