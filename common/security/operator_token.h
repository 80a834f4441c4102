#ifndef RUBATO_COMMON_SECURITY_OPERATOR_TOKEN_H_
#define RUBATO_COMMON_SECURITY_OPERATOR_TOKEN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/security/token_file.h"
#include "common/storage/file.h"

namespace rubato {

// What an operator of a job shows who does not reach its coordinator by gRPC. Errors are as in token_file.h.

// Where it is.
inline std::string OperatorTokenPath(const std::string& run_directory) {
  return JoinPath(run_directory, "credentials/operator.token");
}

// The run's token. NotFound: there is none.
inline absl::StatusOr<std::string> ReadOperatorToken(const std::string& run_directory) {
  return ReadToken(OperatorTokenPath(run_directory));
}

// The same, made if there is none yet.
inline absl::StatusOr<std::string> MakeOrReadOperatorToken(const std::string& run_directory) {
  const absl::Status made = MakeToken(OperatorTokenPath(run_directory));
  return made.ok() ? ReadOperatorToken(run_directory) : made;
}

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_OPERATOR_TOKEN_H_
