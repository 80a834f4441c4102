#ifndef RUBATO_COMMON_SECURITY_JOB_TOKEN_H_
#define RUBATO_COMMON_SECURITY_JOB_TOKEN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/security/token_file.h"
#include "common/storage/file.h"

namespace rubato {

// What the tasks of a job on one machine know and strangers do not, in the file "job.token" of the folder of
// credentials. It says that somebody belongs to the job, not which task it is. Errors are as in token_file.h.

inline std::string JobTokenPath(const std::string& folder) { return JoinPath(folder, "job.token"); }
inline absl::Status MakeJobToken(const std::string& folder) { return MakeToken(JobTokenPath(folder)); }
inline absl::StatusOr<std::string> ReadJobToken(const std::string& folder) { return ReadToken(JobTokenPath(folder)); }

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_JOB_TOKEN_H_
