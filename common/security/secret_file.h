#ifndef RUBATO_COMMON_SECURITY_SECRET_FILE_H_
#define RUBATO_COMMON_SECURITY_SECRET_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato {

// Files that their owner alone may read. Errors are as in common/storage/file.h.

// Creates the folder with mode 0700 if it is not there, and its parents.
absl::Status MakeSecretFolder(const std::string& path);

// Writes the file with mode 0600, in one step: `path` holds the old contents or the new ones. AlreadyExists, unless
// `replace`: it is there.
absl::Status WriteSecretFile(const std::string& path, absl::string_view contents, bool replace);

// FailedPrecondition: users outside of the file's group may read or write it; the message has its mode.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_SECRET_FILE_H_
