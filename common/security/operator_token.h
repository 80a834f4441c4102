#ifndef RUBATO_COMMON_SECURITY_OPERATOR_TOKEN_H_
#define RUBATO_COMMON_SECURITY_OPERATOR_TOKEN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato {

// What an operator of a job shows who does not reach its coordinator by gRPC: 64 hexadecimal digits, 32 random bytes,
// in <run directory>/credentials/operator.token, which its owner alone can read.

// Where it is.
std::string OperatorTokenPath(const std::string& run_directory);

// The run's token, made if there is none yet. FailedPrecondition: others than its owner can read the file, or its
// directory; or the file holds no token. Errors of the disk as of common/storage/file.h.
absl::StatusOr<std::string> MakeOrReadOperatorToken(const std::string& run_directory);

// The run's token. NotFound: there is none. Other errors as above.
absl::StatusOr<std::string> ReadOperatorToken(const std::string& run_directory);

// Whether they are the same, in a time that tells nothing of where they differ.
bool SameToken(absl::string_view a, absl::string_view b);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_OPERATOR_TOKEN_H_
