#ifndef RUBATO_CLI_COMMAND_SSH_DEPLOY_H_
#define RUBATO_CLI_COMMAND_SSH_DEPLOY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/command/environment.h"
#include "cli/command/job_control.h"
#include "cli/command/jobs_on_hosts.h"

namespace rubato {

// What `rubato deploy ssh` does, one function for each of its subcommands.

struct SshUpOptions {
  SshOptions ssh;
  std::string config_path;
  std::vector<std::string> overrides;
  std::string run_directory;
  double time_limit_seconds = 0;
  bool overwrite = false;
  bool detach = false;
  // Go on with what an earlier up has left on the hosts. If its run directory is on none that all of them share,
  // each server needs the host that it had.
  bool resume = false;
};

// Checks the hosts, copies the package, starts the job, follows it to its end, leaves no process of it and brings its
// run directory. With `detach` it returns when the job has been started. With `resume` what is left of the job is ended
// first; NotFound: the run directory is of no such job; FailedPrecondition: it is done. Errors as of
// OpenRemoteHosts, LoadConfigFor, PlanDeployment, PrepareRunDirectory, SshTaskHost and JobSupervisor.
absl::Status SshUp(const SshUpOptions& options, const Environment& environment);

// The same from where the job is followed, for a job that was started.
absl::Status SshFollow(const std::string& run_directory, const Environment& environment);

// Where the job stands, and its tasks; of a run that has ended and was brought here, how it ended.
absl::Status SshStatus(const std::string& run_directory, const Environment& environment);

// Changes the job's mode, or asks it to stop: `rubato switch` and `rubato stop` through ssh. Errors as of these and
// of CoordinatorTunnel. FailedPrecondition: the run has ended and was brought here; says how it ended.
absl::Status SshSwitch(const std::string& run_directory, const SwitchOptions& options, const Environment& environment);
absl::Status SshStop(const std::string& run_directory, const StopOptions& options, const Environment& environment);

// `rubato checkpoint --now` through ssh. Errors in the same way.
absl::Status SshCheckpoint(const std::string& run_directory, const CheckpointNowOptions& options,
                           const Environment& environment);

// Has the tasks of the job recorded for so long, brings their traces, and merges them as `rubato trace` does.
// FailedPrecondition: the job does not train. Also the errors of CoordinatorTunnel, RecordTrace, SshJob::Fetch and
// MergeTraces.
absl::Status SshTrace(const std::string& run_directory, double seconds, const std::string& output,
                      const Environment& environment);

// The last lines of tasks' logs, where they are written.
absl::Status SshLogs(const std::string& run_directory, const std::vector<std::string>& tasks, int lines,
                     const Environment& environment);

// Ends all processes of the job and brings its run directory; with `remove`, then deletes the job's folders.
absl::Status SshDown(const std::string& run_directory, bool remove, const Environment& environment);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_SSH_DEPLOY_H_
