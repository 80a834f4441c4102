#ifndef RUBATO_CLI_COMMAND_RESUMABLE_RUN_H_
#define RUBATO_CLI_COMMAND_RESUMABLE_RUN_H_

#include <string>

#include "absl/status/status.h"
#include "proto/job_config.pb.h"

namespace rubato {

// Whether a job can go on with what its run directory holds. NotFound: there is no journal in it. FailedPrecondition:
// its job is done, and says when and where the weights are; or it still runs.
absl::Status CheckResumable(const std::string& run_directory, absl::Time now);

// FailedPrecondition unless the config is that of the run or comparison that its run directory holds, but for what may
// change where a job goes on (ConfigFingerprint); names what differs.
absl::Status CheckSameJob(const v1::JobConfig& config);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_RESUMABLE_RUN_H_
