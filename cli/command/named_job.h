#ifndef RUBATO_CLI_COMMAND_NAMED_JOB_H_
#define RUBATO_CLI_COMMAND_NAMED_JOB_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/command/run_ending.h"
#include "common/security/task_security.h"

namespace rubato {

// What an operator says of a job.
struct JobChoice {
  // Its coordinator's "host:port", or its run's directory.
  std::string place;
  // The folder with an operator's credentials; empty: that of the run's directory, or none.
  std::string credentials = {};
};

// Adds `name`, the place, and --credentials to a command, which outlives both.
void AddJobChoice(CLI::App* command, const std::string& name, JobChoice* choice);

// The job that an operator names.
struct NamedJob {
  // Empty if only the address was given.
  std::string run_directory;
  // Of its coordinator; empty if the run has ended.
  std::string address;
  // The folder of --credentials; empty: none was named.
  std::string credentials;
  // Null: the operator has none, or the job asks for none.
  std::shared_ptr<const TaskSecurity> security;
  // Its run has ended, and nobody is to be asked: where its coordinator was, another job's may be now.
  std::optional<RunEnding> ending;
};

// Errors as of CoordinatorAddress, and of OpenOperatorSecurity.
absl::StatusOr<NamedJob> FindJob(const JobChoice& choice, absl::Time now);

// The same, for commands that need one that runs. FailedPrecondition: it has ended; says when, how, and where its
// weights are.
absl::StatusOr<NamedJob> FindRunningJob(const JobChoice& choice, absl::Time now);

// What a call to the job's coordinator returned, for a person: if nobody answers, whether the run has just ended, or
// what is to be looked at. Other errors, and OK, stay as they are.
absl::Status ExplainSilence(const NamedJob& job, const absl::Status& status);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_NAMED_JOB_H_
