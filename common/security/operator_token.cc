#include "common/security/operator_token.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/file_descriptor.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr size_t kTokenBytes = 32;

// FailedPrecondition: others than its owner may do something with it.
absl::Status CheckPrivate(const std::string& path) {
  struct stat file = {};
  if (stat(path.c_str(), &file) != 0) return ErrnoError(errno, "look at", path);
  if ((file.st_mode & 077) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: mode %03o; allowed: nothing for group and others (chmod go= %s)", path,
                      static_cast<unsigned>(file.st_mode & 0777), path));
}

absl::StatusOr<std::string> NewToken() {
  std::string bytes(kTokenBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return absl::UnavailableError("the system gives no random bytes");
  }
  return absl::BytesToHexString(bytes);
}

// AlreadyExists: somebody else was first.
absl::Status WriteToken(const std::string& path, const std::string& token) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.open()) return ErrnoError(errno, "create", path);
  const std::string line = absl::StrCat(token, "\n");
  if (write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) || fsync(file.get()) != 0) {
    const int error = errno;
    unlink(path.c_str());
    return ErrnoError(error, "write", path);
  }
  return absl::OkStatus();
}

}  // namespace

std::string OperatorTokenPath(const std::string& run_directory) {
  return JoinPath(run_directory, "credentials/operator.token");
}

absl::StatusOr<std::string> ReadOperatorToken(const std::string& run_directory) {
  const std::string path = OperatorTokenPath(run_directory);
  RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  RUBATO_RETURN_IF_ERROR(CheckPrivate(DirectoryOf(path)));
  RUBATO_RETURN_IF_ERROR(CheckPrivate(path));
  const std::string token(absl::StripAsciiWhitespace(text));
  if (token.size() != 2 * kTokenBytes || !std::all_of(token.begin(), token.end(), absl::ascii_isxdigit)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": is no token; allowed: ", 2 * kTokenBytes,
                                                      " hexadecimal digits (remove it, and another one is made)"));
  }
  return token;
}

absl::StatusOr<std::string> MakeOrReadOperatorToken(const std::string& run_directory) {
  const std::string path = OperatorTokenPath(run_directory);
  const std::string directory = DirectoryOf(path);
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoError(errno, "create", directory);
  if (!FileExists(path)) {
    RUBATO_ASSIGN_OR_RETURN(const std::string token, NewToken());
    absl::Status written = WriteToken(path, token);
    if (!written.ok() && !absl::IsAlreadyExists(written)) return written;
  }
  return ReadOperatorToken(run_directory);
}

bool SameToken(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  // Nothing may let the compiler end the loop early.
  volatile unsigned char different = 0;
  for (size_t i = 0; i < a.size(); ++i) different = static_cast<unsigned char>(different | (a[i] ^ b[i]));
  return different == 0;
}

}  // namespace rubato
