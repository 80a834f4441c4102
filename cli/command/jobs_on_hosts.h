#ifndef RUBATO_CLI_COMMAND_JOBS_ON_HOSTS_H_
#define RUBATO_CLI_COMMAND_JOBS_ON_HOSTS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/command/environment.h"
#include "cli/command/job_run.h"
#include "cli/deploy/package.h"
#include "cli/deploy/ssh_job.h"
#include "cli/deploy/ssh_task_host.h"
#include "cli/launch/stop_signals.h"
#include "proto/deployment.pb.h"
#include "proto/job_config.pb.h"

namespace rubato {

// Jobs on hosts that are reached over SSH: what `deploy ssh up` and `compare --hosts` have in common.

struct SshOptions {
  std::string hosts_path;
  std::string package;
  // What the workers run; empty: as the hosts file says, or our own workers.
  std::string command;
  // Files and folders that are copied to where workers and evaluators run.
  std::vector<std::string> copies;
  std::string program;
  std::string identity;
  std::vector<std::string> ssh_options;
  int64_t min_free_mib = 512;
  double clock_offset_max_seconds = 5;
};
// All but the hosts and the command. Returns --package.
CLI::Option* AddSshOptions(CLI::App* command, SshOptions* options);

// What the options name, read.
struct RemoteHosts {
  SshOptions options;
  // With the command of the workers.
  v1::HostsConfig hosts;
  Package package;
};
// InvalidArgument: there is no package. Errors as of LoadHosts, SplitCommand and OpenPackage.
absl::StatusOr<RemoteHosts> OpenRemoteHosts(const SshOptions& options);

// The config of a job on these hosts. InvalidArgument, beside the errors of LoadJobConfig: it has a model, data or an
// optimizer though the workers are somebody's program.
absl::StatusOr<v1::JobConfig> LoadConfigFor(const RemoteHosts& remote, const std::string& config_path,
                                            const std::vector<std::string>& overrides);

// Which task goes where, under a new id. Errors as of AssignTasks, with the name of the hosts file.
absl::StatusOr<v1::Deployment> PlanDeployment(const RemoteHosts& remote, const v1::JobConfig& config);

// Gives `deployment` the id of the job whose run directory this is, of which nothing runs any more afterwards.
// FailedPrecondition: that job is done. NotFound: there was none. Also the errors of SshJob::Stop.
absl::Status TakeOver(const std::string& run_directory, StopSignals* signals, const Environment& environment,
                      v1::Deployment* deployment);

// Packs what is copied into the file `output`; nothing if nothing is.
absl::StatusOr<std::optional<Archive>> PackCopies(const RemoteHosts& remote, const std::string& output);

// What starts the job on the hosts, or goes on with it. Each thing that it does is shown with `label` before it.
SshTaskHost::Options HostOptions(const RemoteHosts& remote, const v1::JobConfig& config,
                                 const std::optional<Archive>& data, bool resume, const std::string& label,
                                 const Environment& environment);

// Follows the job to its end, leaves no process and brings what was written. `started`: of the host's Start.
// `followed`: it was started by another process.
JobOutcome FollowOnHosts(SshTaskHost* host, const absl::Status& started, const SshJob& job, const v1::JobConfig& config,
                         absl::Duration time_limit, bool followed, const std::string& label, StopSignals* signals,
                         const Environment& environment);

// As RunJob, on these hosts: `run.config` and its run directory are of this machine. A run that is brought whole leaves
// no folder of its own on the hosts. With `run.resume` it goes on if it was begun.
absl::Status RunJobOnHosts(const RemoteHosts& remote, const std::optional<Archive>& data, const PreparedRun& run,
                           const std::string& label, StopSignals* signals, const Environment& environment);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_JOBS_ON_HOSTS_H_
