#ifndef RUBATO_CLI_LAUNCH_JOB_SUPERVISOR_H_
#define RUBATO_CLI_LAUNCH_JOB_SUPERVISOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/launch/restart_policy.h"
#include "cli/launch/stop_signals.h"
#include "cli/launch/task_host.h"
#include "common/clock.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// Sees one job through to its end, wherever its tasks run: shows its progress, says which task has ended or was lost,
// starts lost tasks again, and ends what does not end by itself. Decides everything itself and acts only through its
// TaskHost. What the job goes back to when a task is lost is its coordinator's matter. Not thread-safe; used in the
// main thread.
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
// Lost is a task that ends while the job goes on, by a signal or with another exit status than 0 (it has done its part)
// and 2 (it refuses its config); a coordinator only by a signal, because its exit status is the job's. A lost task is
// started again, as Options.restarts says. When that was too often,
//   a server or the coordinator  ends the job, with the reason;
//   a worker                     is left out as long as another one is there, otherwise it ends the job;
//   an evaluator                 is left out: the weights are worth more than their accuracy.
// A task that refuses its config is not started again. Before the job has begun to train, a task that ends with an
// error stops the job at once, because it would end with the same error again; one that was killed is started again.
//
// Workers of a client's job (Options.clients) are somebody's programs. They may have more to do when the job is done,
// and are waited for. One that was killed is started again; one that ends with an error by itself would do so again,
// and ends the job unless Options.restart_failed says otherwise. One that ends with 0 before the job has begun has not
// taken part, and ends it too: the others would wait for it.
//
// A cause is reported before its consequence. A task that was ended by a signal (not the launcher's), or that refused
// its config, is a cause, whenever that is seen, until it is there again and the job trains. One that ended with
// another error is one only if the job went on afterwards: if a job has failed or was stopped, all of its tasks end
// like that.
class JobSupervisor {
 public:
  struct Options {
    // The job is stopped when it takes longer.
    absl::Duration time_limit = absl::InfiniteDuration();
    // How long the coordinator may not answer since it was started last: cluster.start_timeout_seconds, or less.
    absl::Duration contact_timeout = absl::Seconds(60);
    // How long the tasks have to end by themselves, and then after each more forceful demand.
    absl::Duration grace = absl::Seconds(5);
    absl::Duration poll_interval = absl::Milliseconds(250);
    RestartPolicy::Options restarts;
    // How many workers are clients that the host has started; all of them or none.
    uint32_t clients = 0;
    // Of clients: one that ends with an error is started again like one that was killed.
    bool restart_failed = false;
    // The job was started before, by somebody who has told of what happened up to now.
    bool followed = false;
    // Called with the job's status at every poll that the coordinator answered. May be null.
    std::function<void(const v1::JobStatus&)> on_status;
    // Called with what the user should know: a task that died, a rollback, the job being stopped. May be null.
    std::function<void(absl::string_view)> on_event;
    // Called with each line of TaskHost::News.output. May be null.
    std::function<void(absl::string_view)> on_output;
  };

  // The pointers outlive the supervisor.
  JobSupervisor(Options options, TaskHost* host, const Clock* clock, StopSignals* signals)
      : options_(std::move(options)), host_(host), clock_(clock), signals_(signals), restarts_(options_.restarts) {
    for (uint32_t i = 0; i < options_.clients; ++i) clients_left_.insert(i);
  }

  // Returns when the coordinator and all tasks that can be reached have ended, or have been killed. `started` is what
  // TaskHost::Start returned: after an error, whatever runs is ended.
  void Run(const absl::Status& started);

  // How the job ended, after Run. `recorded_error` is what its run record says, which is known also if the
  // coordinator had ended before it could be asked: absent if it has no end, empty if the job is done.
  //
  // OK: the job is done. Cancelled: a signal stopped it. DeadlineExceeded: the time limit passed, or the coordinator
  // did not answer for the contact timeout. InvalidArgument: a task refused its config. Aborted: the job failed, a task
  // ended before it could begin, or one was lost too often; what happened first is said first, with the last lines of
  // the log that tell why. After a start that failed: that error. Aborted too if the job is done, and a client ended
  // with an error.
  absl::Status Result(const std::optional<std::string>& recorded_error) const;

 private:
  enum class Stage { kRunning, kEnding, kTerminated, kKilled };
  // An end that has been reported, of a task that is not there again.
  struct Death {
    TaskHost::TaskEnd end;
    // Of the process that has ended; 0: not known.
    uint64_t incarnation = 0;
    std::string headline;
    std::string log_tail;
  };
  // A lost task that is to be started again.
  struct Restart {
    TaskHost::TaskEnd end;
    absl::Time at;
  };

  void OnInterrupt();
  void OnNews(TaskHost::News news);
  void OnTaskEnded(const TaskHost::TaskEnd& end);
  bool IsClient(const TaskHost::TaskEnd& end) const;
  bool IsDone() const;
  // Whether the job is done, and clients have more to do.
  bool AwaitsClients() const;
  void OnCoordinatorEnded(const TaskHost::TaskEnd& end);
  void OnTime();
  void PollStatus();
  void ReportEvictions();
  void ReportRollback();
  // Those whose tasks are there again are no reason for anything that comes.
  void ForgetSurvivedDeaths();
  // Once the coordinator has said where the job stands since the task ended.
  void Decide(const TaskHost::TaskEnd& end);
  // Whether the end of a task has to be told when its job has ended: it is not only what becomes of tasks then.
  bool TellsMore(const TaskHost::TaskEnd& end) const;
  void StopBecauseOf(const TaskHost::TaskEnd& end, const std::string& reason);
  // Whether the job has trained, in an earlier term too.
  bool HasBegun() const;
  void StartAgainOrGiveUp(const TaskHost::TaskEnd& end);
  void StartWhatIsDue();
  void GiveUp(const TaskHost::TaskEnd& end);
  bool OthersAreLeft(const v1::TaskId& worker) const;
  bool IsToBeStarted(v1::TaskId::Role role) const;
  // The last death of the task, on a line of its own; empty if there is none.
  std::string LastWords(const v1::TaskId& task) const;
  // Adds to deaths_.
  const Death& Record(const TaskHost::TaskEnd& end);
  // And says so.
  void Report(const TaskHost::TaskEnd& end);
  // That nobody will decide on any more: the causes, or `all`.
  void ReportUndecided(bool all);
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
  RestartPolicy restarts_;
  std::vector<Restart> due_;
  // The incarnation of each task, by role and index, whose loss was reported last.
  std::map<std::pair<int, uint32_t>, uint64_t> reported_;
  // As the coordinator has counted them; absent before it has answered.
  std::optional<int64_t> rollbacks_;
  std::set<uint32_t> clients_left_;
  // How the first of them ended that failed when the job was done.
  std::string client_failure_;
  // Why the launcher stopped the job; OK when it did not.
  absl::Status stop_reason_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_JOB_SUPERVISOR_H_
