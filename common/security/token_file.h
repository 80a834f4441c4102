#ifndef RUBATO_COMMON_SECURITY_TOKEN_FILE_H_
#define RUBATO_COMMON_SECURITY_TOKEN_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato {

// A token: 32 random bytes in hexadecimal, in a file that its owner alone can read.

// One that is in no file. Internal: OpenSSL has no random bytes.
absl::StatusOr<std::string> RandomToken();

// Creates the file, and its folder, if it is not there. Errors are as in secret_file.h.
absl::Status MakeToken(const std::string& path);

// NotFound: there is none. FailedPrecondition: others may read it. DataLoss: it is something else.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// In a time that does not tell how much of it is right.
bool SameToken(absl::string_view a, absl::string_view b);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_TOKEN_FILE_H_
