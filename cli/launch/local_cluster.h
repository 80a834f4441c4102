#ifndef RUBATO_CLI_LAUNCH_LOCAL_CLUSTER_H_
#define RUBATO_CLI_LAUNCH_LOCAL_CLUSTER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/launch/child_process.h"
#include "cli/launch/coordinator_client.h"
#include "cli/launch/slow_workers.h"
#include "cli/launch/stop_signals.h"
#include "cli/launch/task_commands.h"
#include "common/clock.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato {

// Runs a whole job as processes of this machine, in <run_directory>: the config in job.textproto, the coordinator's
// address in coordinator.address, each task's output in logs/. No process outlives the call of Run, nor this process.
// Not thread-safe; lives and is used in the main thread.
//
//   LocalCluster cluster(std::move(options), &clock, signals.get());
//   absl::Status status = cluster.Run();
class LocalCluster {
 public:
  struct Options {
    // With defaults filled in; the run directory exists.
    v1::JobConfig config;
    Binaries binaries;
    std::vector<SlowWorker> slowed;
    // Where the coordinator shows metrics, "host:port"; the other tasks do on free local ports. Empty: nobody does.
    std::string metrics_listen;
    // The job is stopped when it takes longer.
    absl::Duration time_limit = absl::InfiniteDuration();
    // How long the tasks have to end by themselves, and then after each more forceful demand.
    absl::Duration patience = absl::Seconds(5);
    absl::Duration poll_interval = absl::Milliseconds(250);
    // Called with the job's status at every poll that the coordinator answered. May be null.
    std::function<void(const v1::JobStatus&)> on_status;
    // Called with what the user should know: a task that died, the job being stopped. May be null.
    std::function<void(absl::string_view)> on_event;
  };

  // `clock` and `signals` outlive the cluster.
  LocalCluster(Options options, const Clock* clock, StopSignals* signals)
      : options_(std::move(options)), clock_(clock), signals_(signals) {}

  // Starts everything and returns when the coordinator has ended and all processes are gone.
  // OK: the job is done. Cancelled: a signal stopped it. DeadlineExceeded: the time limit passed, or the coordinator
  // did not answer for cluster.start_timeout_seconds. InvalidArgument: a task refused its config. Aborted: the job
  // failed, or a task ended before it could begin, with the error and the last lines of the log that tell why.
  // FailedPrecondition: training.device is CUDA, and there are too few cards for training.cards. Internal: a process
  // could not be started.
  absl::Status Run();

 private:
  enum class Stage { kRunning, kAsked, kTerminated, kKilled };
  struct Task {
    TaskCommand command;
    std::unique_ptr<ChildProcess> process;
    // Started again after a crash.
    int restarts = 0;
    bool ended = false;
  };

  absl::Status Start();
  // That tasks take turns with; 0 where they do not, or where it cannot be told.
  absl::StatusOr<uint32_t> CardsToShareOut();
  absl::StatusOr<std::string> WaitForAddress();
  absl::Status StartTask(Task* task);
  void Supervise();
  void WaitForEvent(absl::Duration timeout);
  // Notices tasks that have ended, except the coordinator.
  void ReapTasks();
  void OnTaskEnded(Task* task, const ExitResult& result);
  void PollStatus();
  void BeginStop(absl::Status why);
  // Makes the next, more forceful demand.
  void Escalate();
  // Gives the tasks time to end after their coordinator, and ends those that do not.
  void EndTasks();
  bool AnyTaskRuns() const;
  void SignalAll(int signal);
  absl::Status Result() const;
  std::string LogPath(const TaskCommand& command) const;
  std::string LogTail(const TaskCommand& command) const;
  void Event(absl::string_view text);

  const Options options_;
  const Clock* const clock_;
  StopSignals* const signals_;
  Task coordinator_;
  std::optional<ExitResult> coordinator_result_;
  std::vector<Task> tasks_;
  std::unique_ptr<CoordinatorClient> client_;
  v1::JobStatus last_status_;
  absl::Time started_;
  absl::Time last_answer_;
  absl::Time next_poll_ = absl::InfinitePast();
  Stage stage_ = Stage::kRunning;
  absl::Time stage_began_;
  // Why the launcher stopped the job; OK when it did not.
  absl::Status stop_reason_;
  // Whether the first task to die refused its config, and its last words.
  bool config_refused_ = false;
  std::string first_death_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_LOCAL_CLUSTER_H_
