#include "coordinator/record/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/storage/file.h"
#include "coordinator/record/append_file.h"

namespace rubato::coordinator {
namespace {

std::string ThisProcess() {
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) != 0) return absl::StrCat("process ", getpid());
  return absl::StrCat("process ", getpid(), " on ", host);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Acquire(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return DiskError(errno, path, "open");
  auto lock = absl::WrapUnique(new FileLock(file));
  int locked = 0;
  do {
    locked = flock(file, LOCK_EX | LOCK_NB);
  } while (locked != 0 && errno == EINTR);
  if (locked != 0 && errno == EWOULDBLOCK) {
    const std::string holder = ReadFile(path).value_or("");
    return absl::FailedPreconditionError(absl::StripAsciiWhitespace(holder));
  }
  const bool unknown = locked != 0 && (errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP);
  if (locked != 0 && !unknown) return DiskError(errno, path, "lock");
  // For people; it is locked whether or not there is room for that.
  const std::string holder = absl::StrCat(ThisProcess(), "\n");
  if (ftruncate(file, 0) == 0) (void)!pwrite(file, holder.data(), holder.size(), 0);
  return lock;
}

FileLock::~FileLock() { close(file_); }

}  // namespace rubato::coordinator
