#include "common/security/secret_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/file_descriptor.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

absl::Status WriteAll(const FileDescriptor& file, absl::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t written = write(file.get(), contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(errno, "write", path);
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(file.get()) == 0 ? absl::OkStatus() : ErrnoError(errno, "sync", path);
}

// Unlike a rename, a link does not replace what is there.
absl::Status Publish(const std::string& temporary, const std::string& path, bool replace) {
  if (replace) {
    return rename(temporary.c_str(), path.c_str()) == 0 ? absl::OkStatus() : ErrnoError(errno, "write", path);
  }
  const int error = link(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  unlink(temporary.c_str());
  return error == 0 ? absl::OkStatus() : ErrnoError(error, "create", path);
}

}  // namespace

absl::Status MakeSecretFolder(const std::string& path) {
  RUBATO_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path)));
  if (mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoError(errno, "create", path);
}

absl::Status WriteSecretFile(const std::string& path, absl::string_view contents, bool replace) {
  // mkstemp creates it with mode 0600, under a name that nobody else takes.
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const FileDescriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.open()) return ErrnoError(errno, "create", path);
  absl::Status status = WriteAll(file, contents, path);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  RUBATO_RETURN_IF_ERROR(Publish(temporary, path, replace));
  return SyncDirectory(DirectoryOf(path));
}

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0) return ErrnoError(errno, "open", path);
  // Kubernetes gives the files of a Secret to the group of the pod.
  if ((facts.st_mode & S_IRWXO) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s has mode %04o, so that others may read or change it; make it 0600", path, facts.st_mode & 07777));
  }
  return ReadFile(path);
}

}  // namespace rubato
