#ifndef RUBATO_CLI_COMMAND_JOB_TRACE_H_
#define RUBATO_CLI_COMMAND_JOB_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/command/environment.h"
#include "cli/launch/coordinator_client.h"

namespace rubato {

// Where in a run directory the traces of a recording are, or with id 0 those of training.trace_steps.
std::string TraceDirectoryOf(const std::string& run_directory, uint64_t id);

// Where a run's latest traces are: of training.trace_steps, or of the last recording. NotFound: it has none.
absl::StatusOr<std::string> LatestTraces(const std::string& run_directory);

// Has the tasks of a job that trains recorded for so long, and waits until they have written their traces where they
// run; returns the recording's id. Whoever has none is named to the user. Errors of the coordinator.
absl::StatusOr<uint64_t> RecordTrace(CoordinatorClient* coordinator, double seconds, const Environment& environment);

// Merges the tasks' traces in a directory into the file `output`, or if that is empty into merged.json beside them,
// and says what is in it. NotFound: there are none. InvalidArgument: a file is no trace.
absl::Status MergeTraces(const std::string& directory, std::string output, const Environment& environment);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_JOB_TRACE_H_
