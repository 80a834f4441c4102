#ifndef RUBATO_CLI_LAUNCH_JOB_SUPERVISOR_H_
#define RUBATO_CLI_LAUNCH_JOB_SUPERVISOR_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/launch/stop_signals.h"
#include "cli/launch/task_host.h"
#include "common/clock.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// Sees one job through to its end, wherever its tasks run: shows its progress, says which task has ended or was lost,
// starts the evaluator again, and ends what does not end by itself. Decides everything itself and acts only through its
// TaskHost. Not thread-safe; used in the main thread.
//
//   JobSupervisor supervisor(std::move(options), &host, &clock, signals.get());
//   supervisor.Run(host.Start());
//   absl::Status finished = host.Finish();
//   absl::Status job = supervisor.Result(recorded_error);
//
// A job goes through these stages; each but the first has `grace` before the next, more forceful one:
//   kRunning     until its coordinator ends, or it is asked to stop
//   kEnding      the others end after the coordinator, or all do as they were asked to
//   kTerminated  all have been sent SIGTERM
//   kKilled      all have been sent SIGKILL
//
// A cause is reported before its consequence. A task that was ended by a signal (not the launcher's), or that refused
// its config (exit status 2), is a cause, whenever that is seen. One that ended with another error is one only if the
// job went on afterwards: where a job has failed or was stopped, all of its tasks end like that.
class JobSupervisor {
 public:
  struct Options {
    // The job is stopped when it takes longer.
    absl::Duration time_limit = absl::InfiniteDuration();
    // How long the coordinator may not answer: cluster.start_timeout_seconds.
    absl::Duration contact_timeout = absl::Seconds(60);
    // How long the tasks have to end by themselves, and then after each more forceful demand.
    absl::Duration grace = absl::Seconds(5);
    absl::Duration poll_interval = absl::Milliseconds(250);
    // Called with the job's status at every poll that the coordinator answered. May be null.
    std::function<void(const v1::JobStatus&)> on_status;
    // Called with what the user should know: a task that died, the job being stopped. May be null.
    std::function<void(absl::string_view)> on_event;
  };

  // The pointers outlive the supervisor.
  JobSupervisor(Options options, TaskHost* host, const Clock* clock, StopSignals* signals)
      : options_(std::move(options)), host_(host), clock_(clock), signals_(signals) {}

  // Returns when the coordinator and all tasks that can be reached have ended, or have been killed. `started` is what
  // TaskHost::Start returned: after an error, whatever runs is ended.
  void Run(const absl::Status& started);

  // How the job ended, after Run. `recorded_error` is what its run record says, which is known also where the
  // coordinator had ended before it could be asked; empty: nothing.
  //
  // OK: the job is done. Cancelled: a signal stopped it. DeadlineExceeded: the time limit passed, or the coordinator
  // did not answer for the contact timeout. InvalidArgument: a task refused its config. Aborted: the job failed, or a
  // task ended before it could begin; what happened first is said first, with the last lines of the log that tell why.
  // After a start that failed: that error.
  absl::Status Result(absl::string_view recorded_error) const;

 private:
  enum class Stage { kRunning, kEnding, kTerminated, kKilled };
  // An end that has been reported.
  struct Death {
    TaskHost::TaskEnd end;
    std::string headline;
    std::string log_tail;
  };

  void OnInterrupt();
  void OnNews(TaskHost::News news);
  void OnTaskEnded(const TaskHost::TaskEnd& end);
  void OnCoordinatorEnded(const ExitResult& result);
  void OnTime();
  void PollStatus();
  void ReportEvictions();
  // Once the coordinator has said where the job stands since the task ended.
  void Decide(const TaskHost::TaskEnd& end);
  bool ShouldStartAgain(const TaskHost::TaskEnd& end);
  // False: it could not be started.
  bool StartAgain(const v1::TaskId& task);
  void Report(const TaskHost::TaskEnd& end);
  void BeginStop(absl::Status why);
  void Enter(Stage stage);
  // Makes the next, more forceful demand.
  void Escalate();
  void Event(absl::string_view text) const;

  const Options options_;
  TaskHost* const host_;
  const Clock* const clock_;
  StopSignals* const signals_;
  Stage stage_ = Stage::kRunning;
  absl::Time stage_began_;
  absl::Time started_;
  absl::Time next_poll_ = absl::InfinitePast();
  // The coordinator's last answer, and when it came.
  v1::JobStatus last_status_;
  absl::Time last_answer_;
  std::optional<ExitResult> coordinator_end_;
  // In the order in which they were seen.
  std::vector<Death> deaths_;
  // Those of which it is not known yet whether the job went on.
  std::vector<TaskHost::TaskEnd> undecided_;
  // How often each task has been started again, by role and index.
  std::map<std::pair<int, uint32_t>, int> restarts_;
  // The incarnation of each task whose eviction was reported last.
  std::map<std::pair<int, uint32_t>, uint64_t> evicted_;
  // Why the launcher stopped the job; OK when it did not.
  absl::Status stop_reason_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_JOB_SUPERVISOR_H_
