#ifndef RUBATO_CLI_COMMAND_JOB_FINDINGS_H_
#define RUBATO_CLI_COMMAND_JOB_FINDINGS_H_

#include <vector>

#include "cli/doctor/finding.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// What is wrong with a running job: a finding for the job and one for each of its tasks. A task that is silent, missing
// or lost is a problem, one that waits for others a warning. Pure.
std::vector<Finding> JudgeJob(const v1::JobStatus& status);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_JOB_FINDINGS_H_
