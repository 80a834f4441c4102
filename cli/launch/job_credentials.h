#ifndef RUBATO_CLI_LAUNCH_JOB_CREDENTIALS_H_
#define RUBATO_CLI_LAUNCH_JOB_CREDENTIALS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/security/identity.h"
#include "proto/job_config.pb.h"

namespace rubato {

// All who have a part in the job: its tasks, and an operator.
std::vector<Identity> IdentitiesOf(const v1::JobConfig& config);

// Makes certificates for a job that a launcher starts on several hosts, in the run directory, unless its config says
// where there are some, or that it wants none. Errors of WriteCredentials.
absl::Status MakeJobCredentials(const v1::JobConfig& config, absl::Time now);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_JOB_CREDENTIALS_H_
