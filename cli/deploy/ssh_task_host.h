#ifndef RUBATO_CLI_DEPLOY_SSH_TASK_HOST_H_
#define RUBATO_CLI_DEPLOY_SSH_TASK_HOST_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/deploy/coordinator_tunnel.h"
#include "cli/deploy/host_check.h"
#include "cli/deploy/package.h"
#include "cli/deploy/ssh.h"
#include "cli/deploy/ssh_job.h"
#include "cli/launch/task_host.h"
#include "common/clock.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato {

// Runs a job's tasks on hosts that are reached over ssh, and talks to their coordinator through ssh too, so that no
// port but ssh's must be open to this machine. Tasks outlive this object unless Finish ends them. A task that is killed
// is started again on its host by remote/launch.sh, whether or not somebody follows the job, which Watch tells in its
// notes; one that has ended with an error, or whose host was started again, by StartAgain.
class SshTaskHost : public TaskHost {
 public:
  // What Start copies and starts.
  struct Launch {
    // Its run directory is that of this machine.
    v1::JobConfig config;
    Package package;
    // For workers and evaluators.
    std::optional<Archive> data;
    HostNeeds needs;
  };
  struct Options {
    // Of this machine.
    std::string run_directory;
    // Absent: the job has been started.
    std::optional<Launch> launch;
    // With `launch`: the job goes on with what it has left on the hosts.
    bool resume = false;
    // Called with what Start does next. May be null.
    std::function<void(absl::string_view)> on_step;
  };

  // The pointers outlive it.
  SshTaskHost(Options options, SshJob* job, const Clock* clock);

  // Errors as of SshJob::Check, Copy and Start. In the run directory are then deployment.textproto and job.textproto.
  absl::Status Start() override;
  // Unavailable: the host does not answer.
  absl::Status StartAgain(const v1::TaskId& task) override;
  void AwaitEvent(int descriptor, absl::Duration timeout) override;
  News Watch() override;
  bool AnyLeft() const override;
  absl::StatusOr<v1::JobStatus> GetStatus(absl::Duration timeout) override;
  absl::Status AskToStop(const std::string& reason, absl::Duration timeout) override;
  // Both end all processes on all hosts, by force if that is needed, and return when that is done.
  void Terminate() override;
  void Kill() override;
  absl::Status Finish() override;
  std::string Describe(const v1::TaskId& task) const override;
  std::string LogTail(const v1::TaskId& task) override;

 private:
  // To the hosts, unless the config says that they have some, or need none.
  absl::Status CopyCredentials(v1::JobConfig config);
  // What watches a host's tasks.
  struct Watcher {
    int host = 0;
    std::optional<Ssh::Running> running;
    // Of its output: what was read.
    size_t read = 0;
    // The number of the last start again that it has told of.
    int told = 0;
    // All of its tasks have ended.
    bool done = false;
    // It cannot be reached.
    bool lost = false;
    absl::Time retry_at = absl::InfinitePast();
  };

  // Keeps the connection to the coordinator open.
  void Connect();
  void Poll(Watcher* watcher, News* news);
  // Of a line of remote/watch.sh; nothing from other lines, and for what it has told before.
  std::optional<TaskEnd> ParseEnd(absl::string_view line);
  std::optional<std::string> ParseStart(absl::string_view line, Watcher* watcher);
  // Of a name in files; nothing if it is none of this job's.
  std::optional<v1::TaskId> TaskOf(const std::string& name) const;
  void Step(absl::string_view text) const;

  const Options options_;
  SshJob* const job_;
  const Clock* const clock_;
  // Processes of the job may be on the hosts.
  bool begun_;
  // Of SshJob::Stop, once it was called.
  std::optional<absl::Status> stopped_;
  std::vector<Watcher> watchers_;
  // Names in files and sessions, of which the ends have been seen.
  std::vector<std::string> ended_;
  std::unique_ptr<CoordinatorTunnel> tunnel_;
  absl::Time tunnel_retry_at_ = absl::InfinitePast();
};

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_SSH_TASK_HOST_H_
