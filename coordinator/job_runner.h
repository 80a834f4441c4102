#ifndef RUBATO_COORDINATOR_JOB_RUNNER_H_
#define RUBATO_COORDINATOR_JOB_RUNNER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "coordinator/record/run_files.h"
#include "coordinator/record/tensorboard_log.h"
#include "coordinator/rules/coordinator_core.h"
#include "coordinator/worker_talk.h"

namespace rubato::coordinator {

// The coordinator's end of a task's stream. Methods are called on the runner's thread and must not block.
class TaskStream {
 public:
  virtual ~TaskStream() = default;
  virtual void Send(const v1::Directive& directive) = 0;
  // The message passed to JobRunner::OnMessage has been handled; the next one may come.
  virtual void Handled() = 0;
  // The task broke the protocol.
  virtual void Close(const absl::Status& why) = 0;
};

// Runs a CoordinatorCore: one thread takes events in order, lets the core decide, and carries its actions out on disk
// and streams. So journal writes block nobody but it. All methods are thread-safe and return at once, except those
// that wait and the destructor; callbacks are called on the thread.
class JobRunner {
 public:
  struct Options {
    v1::JobConfig config;
    uint64_t config_fingerprint = 0;
    // Random and not 0.
    uint64_t job_fingerprint = 0;
    // Whether to go on with what is in the run directory; and also with a job that has failed or was stopped.
    bool resume = false;
    bool resume_ended = false;
    // Both outlive the runner.
    const Clock* clock = nullptr;
    Logger* log = nullptr;
    absl::Duration tick = absl::Milliseconds(50);
    // Called with each line of the run record as it is written, on the runner's thread. May be null.
    std::function<void(const v1::RunRecordLine&)> on_line = nullptr;
  };
  using SwitchDone = std::function<void(absl::StatusOr<v1::SwitchModeReply>)>;
  using CheckpointDone = std::function<void(absl::StatusOr<v1::WriteCheckpointNowReply>)>;

  // Opens the run directory and recovers its journal. Errors as of RunFiles::Open, CoordinatorCore::Create and Recover.
  static absl::StatusOr<std::unique_ptr<JobRunner>> Create(Options options);
  // Streams must be gone. Switches that wait are answered Cancelled.
  ~JobRunner();
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  // A message from a stream, whose first one must be Register. One at a time: the stream waits for Handled. `peer` is
  // gRPC's name of its address.
  void OnMessage(std::shared_ptr<TaskStream> stream, v1::TaskMessage message, std::string peer);
  void OnClosed(std::shared_ptr<TaskStream> stream);

  void GetStatus(std::function<void(v1::JobStatus)> done);
  // The same, for a caller that waits. Nothing when the thread has not come to it within `timeout`.
  std::optional<v1::JobStatus> AwaitStatus(absl::Duration timeout);
  // What an operator asks for; `by` says who, as the run record has it. DeadlineExceeded after `timeout` says what the
  // switch waits for; it stays requested.
  void SwitchMode(const v1::SwitchModeRequest& request, const std::string& by, absl::Duration timeout, SwitchDone done);
  // The same for a checkpoint.
  void WriteCheckpoint(const std::string& by, absl::Duration timeout, CheckpointDone done);
  // As CoordinatorCore::RequestStop, of an operator and of a signal.
  void Stop(const std::string& why, const std::string& by, std::function<void()> done);
  void StopBecauseOf(const std::string& reason);
  // As CoordinatorCore::RequestTrace.
  void Trace(const v1::TraceJobRequest& request, const std::string& by,
             std::function<void(absl::StatusOr<v1::TraceJobReply>)> done);

  // Workers' calls (WorkerTalk), which end at the deadline, or Aborted with the job.
  void PutValue(const v1::PutValueRequest& request, WorkerTalk::Done done);
  void GetValue(const v1::GetValueRequest& request, absl::Duration timeout, WorkerTalk::ValueDone done);
  void Barrier(const v1::BarrierRequest& request, absl::Duration timeout, WorkerTalk::Done done);
  // Clients are not of one mind about their model: the job fails with `reason`, unless it trains already.
  void Disagree(const std::string& reason);

  // The end of the job, or nothing when `timeout` comes first.
  std::optional<absl::Status> Wait(absl::Duration timeout);

 private:
  using TaskKey = std::tuple<int, uint32_t, uint64_t>;
  // An operator's, by ticket.
  template <class Done>
  struct Call {
    absl::Time deadline;
    Done done;
  };
  template <class Done>
  using Calls = std::map<uint64_t, Call<Done>>;

  JobRunner(Options options, std::unique_ptr<RunFiles> files, std::unique_ptr<CoordinatorCore> core);
  void Post(std::function<void()> event);
  void Run();

  // On the thread.
  void Handle(const std::shared_ptr<TaskStream>& stream, const v1::TaskMessage& message, const std::string& peer);
  void Forget(const std::shared_ptr<TaskStream>& stream);
  void Tick();
  // Writes down an operator's request before what it leads to; `actions` have its answer if it was refused.
  template <class Answer>
  void PerformRequest(const std::string& request, const std::string& by, uint64_t ticket, Actions actions);
  // After what still waits.
  void Perform(Actions actions);
  // Carries out what waits, as far as the disk lets it.
  void PerformWaiting();
  absl::Status PerformOne(const Action& action);
  // Of WorkerTalk.
  absl::Status AppendTalk(const v1::JournalRecord& record);
  void EndTalk(const absl::Status& why);
  // Another coordinator has this job now: ends without telling anybody, since the tasks are the other one's.
  void GiveWay(const absl::Status& why);
  // Makes a core that goes on from the journal.
  absl::Status RestartCore();
  // A record of the run that could not be written: said once until one could be again.
  void NoteLostLine(const absl::Status& status);
  void WarnOfCutRecord(const absl::Status& status);
  template <class Done, class Reply>
  static void AnswerCall(Calls<Done>* calls, uint64_t ticket, const Reply& reply);
  // Event files are a convenience: a failure ends them, and not the job.
  void CheckTensorboard(const absl::Status& status);
  template <class Done>
  void Expire(absl::string_view what, absl::Time now, Calls<Done>* calls);
  v1::JobStatus Status() const;
  absl::Time Now() const { return options_.clock->Now(); }

  const Options options_;

  Mutex mu_;
  CondVar wake_;
  CondVar finished_cv_;
  std::vector<std::function<void()>> events_ ABSL_GUARDED_BY(mu_);
  bool quit_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> finished_ ABSL_GUARDED_BY(mu_);

  // The thread's own, once it runs.
  std::unique_ptr<RunFiles> files_;
  // Null: none are written, or an I/O error has ended that.
  std::unique_ptr<TensorboardLog> tensorboard_;
  std::unique_ptr<CoordinatorCore> core_;
  // The last stream of each incarnation, and whose each stream is.
  std::map<TaskKey, std::shared_ptr<TaskStream>> streams_;
  std::map<TaskStream*, v1::TaskId> tasks_;
  Calls<SwitchDone> switches_;
  Calls<CheckpointDone> checkpoints_;
  WorkerTalk talk_;
  // Why no worker's call is answered any more.
  std::optional<absl::Status> talk_ended_;
  uint64_t next_ticket_ = 1;
  // What the core has asked for and is not done: the journal must be written first, and its disk is full.
  std::deque<Action> waiting_;
  bool performing_ = false;
  // Why; empty: it is not.
  std::string disk_problem_;
  // An I/O error: nothing is written any more.
  bool disk_failed_ = false;
  bool line_lost_ = false;
  std::thread thread_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_JOB_RUNNER_H_
