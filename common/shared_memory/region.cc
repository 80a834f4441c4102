#include "common/shared_memory/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
namespace {

// The kernel takes 249 bytes.
constexpr size_t kNameBytesMax = 200;

// From Linux 6.3; the C library's headers may be older.
constexpr unsigned kNoExecSeal = 0x0008;

absl::Status CreateError(int error, absl::string_view action, size_t bytes) {
  const absl::Status status = absl::ErrnoToStatus(error, absl::StrCat("shared memory of ", bytes, " bytes: ", action));
  // How the system says that no file can be so large.
  return error == EFBIG || error == EINVAL ? absl::ResourceExhaustedError(status.message()) : status;
}

absl::StatusOr<FileDescriptor> MakeMemfd(const std::string& name, size_t bytes) {
  const std::string short_name = name.substr(0, kNameBytesMax);
  // A system may be set to refuse memory that could be executed; an older kernel does not know the flag.
  FileDescriptor memfd(memfd_create(short_name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecSeal));
  if (!memfd.open() && errno == EINVAL) {
    memfd = FileDescriptor(memfd_create(short_name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  }
  if (!memfd.open()) return CreateError(errno, "memfd_create", bytes);
  if (ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0) return CreateError(errno, "ftruncate", bytes);
  return memfd;
}

// Its writable mapping is there by now and stays.
absl::Status Seal(const FileDescriptor& memfd, size_t bytes) {
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  if (fcntl(memfd.get(), F_ADD_SEALS, kSize | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0) return absl::OkStatus();
  if (errno == EINVAL && fcntl(memfd.get(), F_ADD_SEALS, kSize | F_SEAL_SEAL) == 0) return absl::OkStatus();
  return CreateError(errno, "sealing", bytes);
}

absl::StatusOr<FileDescriptor> ReopenReadOnly(const FileDescriptor& memfd, size_t bytes) {
  const std::string path = absl::StrCat("/proc/self/fd/", memfd.get());
  FileDescriptor reopened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reopened.open()) return CreateError(errno, absl::StrCat("opening ", path), bytes);
  return reopened;
}

// The size of a peer's memory, once it is sure to stay.
absl::StatusOr<size_t> CheckedSize(const FileDescriptor& descriptor, size_t bytes_max) {
  const int seals = fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0) return absl::InvalidArgumentError("the peer's descriptor is not of shared memory (memfd)");
  if ((seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError("the peer's shared memory is not sealed against shrinking");
  }
  struct stat info;
  if (fstat(descriptor.get(), &info) != 0) return absl::ErrnoToStatus(errno, "the peer's shared memory: fstat");
  const uint64_t bytes = static_cast<uint64_t>(info.st_size);
  if (bytes == 0) return absl::InvalidArgumentError("the peer's shared memory is empty");
  if (bytes > bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer's shared memory has ", bytes, " bytes, more than the ", bytes_max, " allowed"));
  }
  return static_cast<size_t>(bytes);
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::Create(const std::string& name, size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("shared memory of 0 bytes; at least 1 is needed");
  RUBATO_ASSIGN_OR_RETURN(const FileDescriptor memfd, MakeMemfd(name, bytes));
  return Take(memfd, bytes);
}

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::Adopt(FileDescriptor memfd, size_t bytes) {
  const int seals = fcntl(memfd.get(), F_GET_SEALS);
  if (seals < 0) return absl::InvalidArgumentError("the client's descriptor is not of shared memory (memfd)");
  if ((seals & F_SEAL_SEAL) != 0) return absl::InvalidArgumentError("the client's shared memory takes no seals");
  struct stat info;
  if (fstat(memfd.get(), &info) != 0) return CreateError(errno, "fstat", bytes);
  if (static_cast<uint64_t>(info.st_size) != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the client's shared memory has ", info.st_size, " bytes, not the ", bytes, " of its model"));
  }
  return Take(memfd, bytes);
}

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::Take(const FileDescriptor& memfd, size_t bytes) {
  if (fchmod(memfd.get(), S_IRUSR) != 0) return CreateError(errno, "fchmod", bytes);
  RUBATO_ASSIGN_OR_RETURN(FileDescriptor read_only, ReopenReadOnly(memfd, bytes));
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (data == MAP_FAILED) return CreateError(errno, "mmap", bytes);
  std::shared_ptr<SharedRegion> region(new SharedRegion(static_cast<uint8_t*>(data), bytes, std::move(read_only)));
  RUBATO_RETURN_IF_ERROR(Seal(memfd, bytes));
  return region;
}

absl::StatusOr<std::shared_ptr<const SharedRegion>> SharedRegion::Map(FileDescriptor descriptor, size_t bytes_max) {
  RUBATO_ASSIGN_OR_RETURN(const size_t bytes, CheckedSize(descriptor, bytes_max));
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor.get(), 0);
  if (data == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, absl::StrCat("the peer's shared memory of ", bytes, " bytes: mmap"));
  }
  return std::shared_ptr<const SharedRegion>(new SharedRegion(static_cast<uint8_t*>(data), bytes, FileDescriptor()));
}

SharedRegion::~SharedRegion() { munmap(data_, size_); }

const uint8_t* SharedRegion::Find(uint64_t offset, uint64_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) return nullptr;
  return data_ + offset;
}

std::optional<uint64_t> SharedRegion::OffsetOf(const void* data, size_t bytes) const {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data_);
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  if (address < begin || Find(address - begin, bytes) == nullptr) return std::nullopt;
  return address - begin;
}

}  // namespace rubato
