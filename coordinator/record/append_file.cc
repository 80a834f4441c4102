#include "coordinator/record/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato::coordinator {

absl::Status DiskError(int error, absl::string_view path, absl::string_view what) {
  // EFBIG: a limit of the process or the file system, under which the file may be brought.
  const bool no_room = error == ENOSPC || error == EDQUOT || error == EFBIG;
  const std::string message = absl::StrCat(path, ": cannot ", what, ": ", strerror(error));
  return no_room ? absl::ResourceExhaustedError(message) : absl::UnavailableError(message);
}

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Open(const std::string& path, SyncFile sync) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return DiskError(errno, path, "open");
  auto opened = absl::WrapUnique(new AppendFile(path, file, sync));
  struct stat info;
  if (fstat(file, &info) != 0) return DiskError(errno, path, "look at");
  opened->size_ = static_cast<uint64_t>(info.st_size);
  return opened;
}

AppendFile::~AppendFile() { close(file_); }

absl::Status AppendFile::Append(absl::string_view bytes) {
  if (torn_) RUBATO_RETURN_IF_ERROR(Truncate(size_));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = pwrite(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(size_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const absl::Status failed = DiskError(errno, path_, "write");
      // If it fails as well, the next call begins with it.
      Truncate(size_).IgnoreError();
      return failed;
    }
    done += static_cast<size_t>(written);
  }
  size_ += bytes.size();
  return absl::OkStatus();
}

absl::Status AppendFile::Truncate(uint64_t size) {
  size_ = size;
  torn_ = ftruncate(file_, static_cast<off_t>(size)) != 0;
  return torn_ ? DiskError(errno, path_, "truncate") : absl::OkStatus();
}

absl::Status AppendFile::RenameTo(const std::string& path) {
  if (rename(path_.c_str(), path.c_str()) != 0) return DiskError(errno, path_, absl::StrCat("rename to ", path));
  path_ = path;
  return absl::OkStatus();
}

bool AppendFile::IsReplaced() const {
  struct stat info;
  return fstat(file_, &info) == 0 && info.st_nlink == 0;
}

absl::Status AppendFile::Sync() { return sync_(file_) == 0 ? absl::OkStatus() : DiskError(errno, path_, "sync"); }

}  // namespace rubato::coordinator
