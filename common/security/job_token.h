#ifndef RUBATO_COMMON_SECURITY_JOB_TOKEN_H_
#define RUBATO_COMMON_SECURITY_JOB_TOKEN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato {

// What the tasks of a job on one machine know and strangers do not: 32 random bytes in hexadecimal, in the file
// "job.token" of the folder of credentials. It says that somebody belongs to the job, not which task it is.

// Creates it, and the folder, if it is not there. Errors are as in secret_file.h.
absl::Status MakeJobToken(const std::string& folder);

// NotFound: there is none. FailedPrecondition: others may read it. DataLoss: it is something else.
absl::StatusOr<std::string> ReadJobToken(const std::string& folder);

// In a time that does not tell how much of it is right.
bool SameToken(absl::string_view a, absl::string_view b);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_JOB_TOKEN_H_
