#ifndef RUBATO_CLI_COMMAND_NAMED_JOB_H_
#define RUBATO_CLI_COMMAND_NAMED_JOB_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/command/run_ending.h"

namespace rubato {

// The job that an operator names, by its coordinator's "host:port" or by its run's directory.
struct NamedJob {
  // Empty if only the address was given.
  std::string run_directory;
  // Of its coordinator; empty if the run has ended.
  std::string address;
  // Its run has ended, and nobody is to be asked: where its coordinator was, another job's may be now.
  std::optional<RunEnding> ending;
};

// Errors as of CoordinatorAddress.
absl::StatusOr<NamedJob> FindJob(const std::string& text);

// The same, for commands that need one that runs. FailedPrecondition: it has ended; says when, how, and where its
// weights are.
absl::StatusOr<NamedJob> FindRunningJob(const std::string& text);

// What a call to the job's coordinator returned, for a person: if nobody answers, whether the run has just ended, or
// what is to be looked at. Other errors, and OK, stay as they are.
absl::Status ExplainSilence(const NamedJob& job, const absl::Status& status);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_NAMED_JOB_H_
