#ifndef RUBATO_CLI_COMMAND_WATCH_OUTCOME_H_
#define RUBATO_CLI_COMMAND_WATCH_OUTCOME_H_

#include "absl/status/status.h"
#include "cli/command/run_ending.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// What it means to who watches a job that it has ended. OK: it is done. Aborted: it failed, or was stopped on request;
// the message says which, why, and how to go on. REQUIRES: `status` is DONE or FAILED.
absl::Status WatchOutcome(const v1::JobStatus& status);

// The same, as its run record tells.
absl::Status WatchOutcome(const RunEnding& ending);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_WATCH_OUTCOME_H_
