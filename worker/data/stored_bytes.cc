#include "worker/data/stored_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/byte_file.h"

namespace rubato::worker {
namespace {

constexpr int64_t kBlock = 1 << 20;

absl::Status TooMany(const std::string& path, int64_t max_bytes) {
  return absl::ResourceExhaustedError(absl::StrCat(path, ": more than ", max_bytes, " bytes"));
}

// Reads what is there of [offset, offset + count); fewer bytes at the end of the file alone.
absl::StatusOr<int64_t> ReadAt(int descriptor, const std::string& name, int64_t offset, int64_t count, uint8_t* out) {
  int64_t done = 0;
  while (done < count) {
    const ssize_t read = ::pread(descriptor, out + done, static_cast<size_t>(count - done), offset + done);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name));
    if (read == 0) break;
    done += read;
  }
  return done;
}

absl::StatusOr<bool> IsGzip(int descriptor, const std::string& path) {
  uint8_t magic[2];
  RUBATO_ASSIGN_OR_RETURN(const int64_t count, ReadAt(descriptor, path, 0, 2, magic));
  return count == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
}

// It has no name, so that it is gone with the process, however that ends.
absl::StatusOr<OwnedFile> MakeTemporaryFile(const std::string& name, std::string* directory) {
  std::error_code error;
  *directory = std::filesystem::temp_directory_path(error).string();
  if (error) *directory = "/tmp";
  const auto failed = [&] {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a temporary file in ", *directory, " for ", name,
                                                   ", which is larger than data.memory_bytes"));
  };
  OwnedFile file(::open(directory->c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.get() >= 0) return file;
  // Not every file system can make one without a name at once.
  std::string path = absl::StrCat(*directory, "/rubato-data-XXXXXX");
  file = OwnedFile(::mkostemp(path.data(), O_CLOEXEC));
  if (file.get() < 0 || ::unlink(path.c_str()) != 0) return failed();
  return file;
}

}  // namespace

OwnedFile::~OwnedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

absl::StatusOr<std::unique_ptr<const StoredBytes>> StoredBytes::OpenFile(const std::string& path, int64_t memory_bytes,
                                                                         int64_t max_bytes) {
  OwnedFile plain(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (plain.get() < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  struct stat status = {};
  if (::fstat(plain.get(), &status) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  if (S_ISREG(status.st_mode) && status.st_size > memory_bytes) {
    RUBATO_ASSIGN_OR_RETURN(const bool compressed, IsGzip(plain.get(), path));
    if (!compressed && status.st_size > max_bytes) return TooMany(path, max_bytes);
    if (!compressed)
      return std::unique_ptr<const StoredBytes>(new StoredBytes(path, {}, std::move(plain), status.st_size));
  }
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ByteFile> file, ByteFile::Open(path));
  StoredBytesWriter writer(path, memory_bytes);
  std::vector<uint8_t> block(kBlock);
  for (int64_t count = kBlock; count == kBlock;) {
    RUBATO_ASSIGN_OR_RETURN(count, file->Read(block.data(), kBlock));
    if (writer.size() + count > max_bytes) return TooMany(path, max_bytes);
    RUBATO_RETURN_IF_ERROR(writer.Append(block.data(), count));
  }
  return writer.Finish();
}

absl::StatusOr<const uint8_t*> StoredBytes::Read(int64_t offset, int64_t count, std::vector<uint8_t>* scratch) const {
  if (file_.get() < 0) return memory_.data() + offset;
  if (static_cast<int64_t>(scratch->size()) < count) scratch->resize(count);
  RUBATO_ASSIGN_OR_RETURN(const int64_t read, ReadAt(file_.get(), name_, offset, count, scratch->data()));
  if (read == count) return scratch->data();
  return absl::DataLossError(absl::StrCat(name_, ": ", read, " bytes from byte ", offset, " on; expected: ", count,
                                          ", as when it was opened"));
}

absl::Status StoredBytes::Scan(int64_t offset,
                               absl::FunctionRef<absl::Status(int64_t, const uint8_t*, int64_t)> visit) const {
  std::vector<uint8_t> scratch;
  for (; offset < size_; offset += kBlock) {
    const int64_t count = std::min(kBlock, size_ - offset);
    RUBATO_ASSIGN_OR_RETURN(const uint8_t* data, Read(offset, count, &scratch));
    RUBATO_RETURN_IF_ERROR(visit(offset, data, count));
  }
  return absl::OkStatus();
}

absl::Status StoredBytesWriter::Append(const void* data, int64_t count) {
  if (file_.get() < 0 && size_ + count > memory_bytes_) RUBATO_RETURN_IF_ERROR(MoveToFile());
  if (file_.get() >= 0) {
    RUBATO_RETURN_IF_ERROR(Write(data, count));
  } else {
    const auto* bytes = static_cast<const uint8_t*>(data);
    memory_.insert(memory_.end(), bytes, bytes + count);
  }
  size_ += count;
  return absl::OkStatus();
}

absl::Status StoredBytesWriter::MoveToFile() {
  std::string directory;
  RUBATO_ASSIGN_OR_RETURN(file_, MakeTemporaryFile(name_, &directory));
  RUBATO_RETURN_IF_ERROR(Write(memory_.data(), static_cast<int64_t>(memory_.size())));
  memory_ = std::vector<uint8_t>();
  return absl::OkStatus();
}

absl::Status StoredBytesWriter::Write(const void* data, int64_t count) {
  const auto* bytes = static_cast<const char*>(data);
  while (count > 0) {
    const ssize_t written = ::write(file_.get(), bytes, static_cast<size_t>(count));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat("cannot write ", count, " bytes of ", name_, " to a temporary file (TMPDIR says where)"));
    }
    bytes += written;
    count -= written;
  }
  return absl::OkStatus();
}

std::unique_ptr<const StoredBytes> StoredBytesWriter::Finish() {
  memory_.shrink_to_fit();
  return std::unique_ptr<const StoredBytes>(
      new StoredBytes(std::move(name_), std::move(memory_), std::move(file_), size_));
}

}  // namespace rubato::worker
