#ifndef RUBATO_CLI_COMMAND_COMPARED_JOB_H_
#define RUBATO_CLI_COMMAND_COMPARED_JOB_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/command/client_job.h"
#include "cli/command/environment.h"
#include "cli/command/job_run.h"
#include "cli/command/jobs_on_hosts.h"
#include "cli/launch/stop_signals.h"

namespace rubato {

// What a comparison runs again and again, and where.
struct ComparedJobOptions {
  RunOptions run;
  // Without hosts the jobs run on this machine, and the rest of these options says nothing. With hosts `run.launch` has
  // nothing of local processes, and `client` no numbers of tasks.
  SshOptions ssh;
  // Of a client's job; empty: the config says what is trained.
  std::string command;
  ClientJobOptions client;
};

struct ComparedJob {
  // In the mode of its config. Its run directory, which is there, is that of all runs together.
  PreparedRun base;
  // Runs one of the variants to its end, each line of progress with `label` before it. Errors as of RunJob and
  // RunJobOnHosts.
  std::function<absl::Status(const PreparedRun& run, const std::string& label)> run_job;
};

// `signals` and `environment` outlive what is returned. InvalidArgument: numbers of tasks of a job that its config
// describes, or hosts without a config; otherwise errors as of PrepareRun and PrepareClientRun, or of OpenRemoteHosts
// and LoadConfigFor.
absl::StatusOr<ComparedJob> PrepareComparedJob(const ComparedJobOptions& options, StopSignals* signals,
                                               const Environment& environment);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_COMPARED_JOB_H_
