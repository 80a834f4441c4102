#ifndef RUBATO_CLI_DEPLOY_SSH_FOLLOWER_H_
#define RUBATO_CLI_DEPLOY_SSH_FOLLOWER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/deploy/coordinator_tunnel.h"
#include "cli/deploy/ssh.h"
#include "cli/deploy/ssh_job.h"
#include "cli/launch/stop_signals.h"
#include "common/clock.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// Follows a started job to its end: shows its progress, and says which task has ended or was lost, and which host
// cannot be reached. Talks to the coordinator through ssh, so that no port but ssh's must be open to this machine. Not
// thread-safe; used in the main thread.
//
//   absl::Status status = SshFollower(std::move(options), job.get(), &clock, signals.get()).Run();
class SshFollower {
 public:
  struct Options {
    // The job is stopped when it takes longer.
    absl::Duration time_limit = absl::InfiniteDuration();
    // How long the coordinator may be out of reach: cluster.start_timeout_seconds.
    absl::Duration contact_timeout = absl::Seconds(60);
    // How long the tasks have to end after their coordinator, and the coordinator once it was asked to stop.
    absl::Duration patience = absl::Seconds(10);
    absl::Duration poll_interval = absl::Milliseconds(250);
    // As of LocalCluster.
    std::function<void(const v1::JobStatus&)> on_status;
    std::function<void(absl::string_view)> on_event;
  };

  // The pointers outlive it. REQUIRES: the job has been started.
  SshFollower(Options options, SshJob* job, const Clock* clock, StopSignals* signals)
      : options_(std::move(options)), job_(job), clock_(clock), signals_(signals) {}

  // Returns when the coordinator has ended, and the other tasks with it or `patience` later.
  // OK: the job is done. Cancelled: a signal stopped it. DeadlineExceeded: the time limit passed, or the coordinator
  // was out of reach for too long. Aborted: the job failed, or a task ended before it could begin; with the reason.
  // SshJob::Stop is needed afterwards.
  absl::Status Run();

 private:
  // What watches a host's tasks.
  struct Watcher {
    int host = 0;
    std::optional<Ssh::Running> running;
    // Of its output: what was read.
    size_t read = 0;
    // All of its tasks have ended.
    bool done = false;
    // It cannot be reached.
    bool lost = false;
    absl::Time retry_at = absl::InfinitePast();
  };

  void Wait();
  void Connect();
  void PollWatchers();
  void PollWatcher(Watcher* watcher);
  void OnTaskEnded(const std::string& name, const std::string& exit_status);
  void PollStatus();
  // Stops a job that waits for a task that has ended: nobody would take its place before the start has timed out.
  void CheckStart();
  // What the status says of tasks for the first time.
  void ReportTasks(const v1::JobStatus& status);
  void BeginStop(absl::Status why);
  bool Over(absl::Time now) const;
  absl::Status Result() const;
  std::string LogTail(const std::string& task) const;
  void Event(absl::string_view text);

  const Options options_;
  SshJob* const job_;
  const Clock* const clock_;
  StopSignals* const signals_;
  std::vector<Watcher> watchers_;
  std::unique_ptr<CoordinatorTunnel> tunnel_;
  absl::Time tunnel_retry_at_ = absl::InfinitePast();
  v1::JobStatus last_status_;
  absl::Time last_answer_;
  absl::Time started_;
  // What has been reported.
  std::set<std::string> ended_;
  std::set<std::string> evicted_;
  // The first task that failed, and how, while it is not known that the job has begun.
  std::string first_ended_;
  std::string first_death_;
  // The coordinator's exit status, and since when it is known.
  std::optional<std::string> coordinator_exit_;
  absl::Time coordinator_ended_;
  // Why the launcher stopped the job, and when; OK when it did not.
  absl::Status stop_reason_;
  absl::Time stop_began_;
  bool give_up_ = false;
};

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_SSH_FOLLOWER_H_
