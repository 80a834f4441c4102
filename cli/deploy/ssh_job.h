#ifndef RUBATO_CLI_DEPLOY_SSH_JOB_H_
#define RUBATO_CLI_DEPLOY_SSH_JOB_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/deploy/host_check.h"
#include "cli/deploy/package.h"
#include "cli/deploy/scripts.h"
#include "cli/deploy/ssh.h"
#include "cli/launch/stop_signals.h"
#include "common/clock.h"
#include "proto/deployment.pb.h"
#include "proto/job_config.pb.h"

namespace rubato {

// What can be done with one job on its hosts. Every method asks all of its hosts at the same time; its error names all
// hosts that failed, with the reason, a line each. Processes of the job carry its id, so that whatever happens to the
// launcher, Stop finds them. Not thread-safe; used in the main thread.
//
//   RUBATO_ASSIGN_OR_RETURN(auto job, SshJob::Create(deployment, &clock, signals.get()));
//   RUBATO_RETURN_IF_ERROR(job->Check(needs, &package, &data));
//   RUBATO_RETURN_IF_ERROR(job->Copy(package, data));
//   RUBATO_RETURN_IF_ERROR(job->Start(config, package));
//
// Cancelled: a signal came before all hosts had answered.
class SshJob {
 public:
  // The pointers outlive it. Errors as of Ssh::Create.
  static absl::StatusOr<std::unique_ptr<SshJob>> Create(v1::Deployment deployment, const Clock* clock,
                                                        StopSignals* signals);

  // Whether each host can be reached and has what it needs. `data`: null if none is copied.
  // FailedPrecondition: hosts that cannot be used. Nothing has changed, but for the hosts' empty folders.
  absl::Status Check(const HostNeeds& needs, const Package& package, const Archive* data);

  // Copies the package, and the data to where workers and evaluators run, to hosts that do not have them.
  // FailedPrecondition: names the hosts. REQUIRES: Check was OK.
  absl::Status Copy(const Package& package, const Archive* data);

  // Copies from the folder of credentials to each host those of its own tasks, and to none the authority's key.
  // FailedPrecondition: names the hosts.
  absl::Status CopyCredentials(const std::string& folder);

  // Starts the coordinator and then all other tasks. `config_path` has `config`, whose run directory is that on the
  // hosts (run_directory()). Whatever this returns, Stop is needed afterwards.
  // Aborted, Unavailable: the coordinator, or another task, could not be started; names the hosts.
  absl::Status Start(const v1::JobConfig& config, const std::string& config_path, const Package& package, bool resume);

  // Starts a task again that has ended for good, as it was started before. Unavailable: names its host, and why not.
  absl::Status StartAgain(const v1::TaskId& task);

  // Ends what may be left of the job, whose folders are on the hosts, so that Start goes on with what is in them.
  // FailedPrecondition: there is no journal where the coordinator is to be. Unavailable: as of Stop.
  absl::Status Renew();

  // Ends all processes of the job: they have ten seconds to do so by themselves. Heeds no signals.
  // Unavailable: hosts where that is not certain.
  absl::Status Stop();

  // Brings what the tasks have written into `directory` of this machine, or only what is in `part` of the run directory
  // ("traces/1"). Unavailable: hosts whose part is missing.
  absl::Status Fetch(const std::string& directory, const std::string& part = "");

  // Deletes the job's folders on the hosts. Unavailable: hosts where it is still there.
  absl::Status Remove();

  // The hosts' tasks and whether they run, a line each, and the hosts that do not answer.
  std::string DescribeTasks();

  // The last lines of the tasks' logs ("worker-1", "coordinator"); of all if `names` is empty.
  // InvalidArgument: there is no such task. Unavailable: hosts that do not answer. `text` has what was read.
  absl::Status ReadLogs(const std::vector<std::string>& names, int lines, std::string* text);

  // Runs until every task on `host` has ended, and writes "exit <task> <status>" for each, and "alive" in between.
  absl::StatusOr<Ssh::Running> Watch(int host);

  // Relative to the hosts' folders.
  std::string run_directory() const;
  const v1::Deployment& deployment() const { return deployment_; }
  // Indices of the hosts that have tasks.
  const std::vector<int>& hosts() const { return hosts_; }
  Ssh* ssh() { return ssh_.get(); }
  std::string HostOf(v1::TaskId::Role role, uint32_t index) const;
  int coordinator_host() const { return static_cast<int>(deployment_.tasks(0).host()); }

 private:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  SshJob(v1::Deployment deployment, std::unique_ptr<Ssh> ssh, const Clock* clock);
  // The script for a host, with the variables that all have. `marked`: it is one of the job's processes.
  SshCall Call(int host, HostScript script, const Variables& variables, bool marked) const;
  absl::Status CopyArchive(const Archive& archive, const std::string& stored, HostScript script,
                           const std::vector<int>& hosts);
  absl::Status StartCoordinator(const std::string& config_path, const Package& package, bool resume);
  // The command that starts a task, in remote/launch.sh.
  std::string StartCommand(const v1::DeployedTask& task, const v1::JobConfig& config) const;
  // The same for a worker that is somebody's program.
  std::string StartProgram(const v1::DeployedTask& task) const;
  std::vector<int> HostsWithData() const;

  v1::Deployment deployment_;
  const std::unique_ptr<Ssh> ssh_;
  const Clock* const clock_;
  std::vector<int> hosts_;
  // By host, after Check.
  std::map<int, HostFacts> facts_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_SSH_JOB_H_
