#ifndef RUBATO_COORDINATOR_COORDINATOR_CORE_H_
#define RUBATO_COORDINATOR_COORDINATOR_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/action.h"
#include "coordinator/evaluation_schedule.h"
#include "coordinator/job_progress.h"
#include "coordinator/membership.h"
#include "coordinator/mode_policy.h"
#include "coordinator/plan_maker.h"
#include "coordinator/plan_watch.h"
#include "coordinator/shard_dispatcher.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "proto/journal.pb.h"

namespace rubato::coordinator {

// The coordinator without its shell: the life of one job from the first registration to the last Stop. A pure state
// machine, not thread-safe: it takes messages and the time, and returns what is to be done. Messages of one task may be
// repeated and, between its sessions, lost; a task that comes back registers again and is told everything anew.
//
//   RUBATO_ASSIGN_OR_RETURN(auto core, CoordinatorCore::Create(options));
//   Perform(core->OnMessage(message, "ipv4:10.0.0.2:5555", clock.Now()));
//   Perform(core->OnTick(clock.Now()));  // every 50 to 100 ms
//
// The phases:
//   STARTING   all servers and cluster.workers workers register; chunks are placed; plan 1 is taken by all servers and
//              the initial weights are written as checkpoint "step0". Then workers learn the plan.
//   TRAINING   until the data is used up and the last worker has left.
//   FINISHING  final evaluation, checkpoint "final".
//   A stop on request writes checkpoint "stopped" before FAILED.
//   DONE, FAILED  Stop to all; over when they have left, or after two seconds.
//
// With DYNAMIC dispatch the data is used up when every shard is finished. Workers know their last step, of STATIC
// dispatch or training.max_steps, and leave by themselves.
class CoordinatorCore {
 public:
  struct Options {
    // Complete and valid (common/config).
    v1::JobConfig config;
    uint64_t config_fingerprint = 0;
    // Random and not 0; names the job on the data path unless Recover finds a started one.
    uint64_t job_fingerprint = 0;
    // When the coordinator started.
    absl::Time start;
  };

  // InvalidArgument when the model has no shape or cannot be cut into chunks.
  static absl::StatusOr<std::unique_ptr<CoordinatorCore>> Create(const Options& options);

  // Takes over the state of a journal, before anything else is called; nothing to do when it is empty.
  // FailedPrecondition: the journal is of another job or config, or its job has ended. InvalidArgument: the records
  // make no sense. The core is of no use after an error.
  absl::StatusOr<Actions> Recover(const std::vector<v1::JournalRecord>& records, absl::Time now);

  // `peer` is gRPC's name of the sender's address.
  Actions OnMessage(const v1::TaskMessage& message, absl::string_view peer, absl::Time now);
  // The task's stream broke. That evicts nobody: the lease decides.
  Actions OnDisconnect(const v1::TaskId& task, absl::Time now);
  Actions OnTick(absl::Time now);

  // An operator's request; `ticket` is not 0. Its AnswerSwitch comes at once (InvalidArgument, FailedPrecondition) or
  // with a later action: the committed plan, or Aborted when another request took its place or the job ended.
  Actions RequestSwitch(const v1::SwitchModeRequest& request, uint64_t ticket, absl::Time now);
  // Ends the job as failed with `reason`. While it trains the servers write checkpoint "stopped" first, for at most
  // cluster.wait_timeout_seconds; a second request does not wait for it. Does nothing when the job has ended.
  Actions RequestStop(const std::string& reason, absl::Time now);
  // The same at once, without a checkpoint.
  Actions Abort(const std::string& reason, absl::Time now);

  // Tells all servers and workers to record a trace; `reply` has its id and who was told. InvalidArgument: the time is
  // out of range. FailedPrecondition: the job is not TRAINING.
  absl::StatusOr<Actions> RequestTrace(const v1::TraceJobRequest& request, v1::TraceJobReply* reply, absl::Time now);

  v1::JobStatus Status(absl::Time now) const;
  // What the job waits for now, as text; empty when it does not wait.
  std::string WaitingFor() const;
  v1::JobStatus::Phase phase() const { return phase_; }
  // Generation of the plan that holds, 0 for none, and the furthest worker's step.
  std::pair<uint64_t, int64_t> Position() const { return {held_plan_.generation(), progress_.Totals().step}; }

 private:
  CoordinatorCore(const Options& options, std::vector<v1::ChunkPlacement> chunks);

  // coordinator_core.cc: messages, evictions, time.
  void Handle(const v1::TaskMessage& message, absl::Time now);
  void OnHeartbeat(Member* member, const v1::Heartbeat& heartbeat, absl::Time now);
  void OnShardRequest(const v1::TaskId& worker, const v1::ShardRequest& request);
  void OnEvaluation(const v1::EvaluationResult& result, absl::Time now);
  void OnLeaving(const v1::TaskId& task, const v1::Leaving& leaving, absl::Time now);
  void Evict(const v1::TaskId& task, const std::string& reason, absl::Time now);
  void Detach(const v1::TaskId& task, bool lost, v1::MemberLine::Event event, const std::string& reason,
              absl::Time now);
  void CheckLeases(absl::Time now);
  void Train(absl::Time now);
  void CheckWorkersGone(absl::Time now);
  int64_t LastStep() const;
  // Whether a worker that leaves, with no more to do, has done training.max_steps steps.
  bool DidLastStep(const v1::WorkerProgress& progress) const;

  // core_start.cc: registration and the way to TRAINING.
  void OnRegister(const v1::TaskMessage& message, absl::string_view peer, absl::Time now);
  void Refuse(const v1::TaskId& task, absl::string_view reason);
  void OnNewTask(const v1::TaskId& task, absl::Time now);
  void Greet(const v1::TaskId& task, absl::Time now);
  std::string MissingTasks() const;
  void MaybePlace(absl::Time now);
  void StartTraining(absl::Time now);
  void SetUp(int64_t train_examples);
  void TellWaiting();
  v1::Directive Describe() const;

  // core_finish.cc: checkpoints and the end.
  void BeginCheckpoint(const std::string& name);
  void OnCheckpointDone(const v1::TaskId& server, const v1::CheckpointDone& done, absl::Time now);
  void BeginFinishing(absl::Time now);
  void ContinueFinishing(absl::Time now);
  void CheckStopping(absl::Time now);
  void Fail(const std::string& error, absl::Time now);
  void End(absl::Time now);
  void CheckEnded(absl::Time now);

  // core_plan.cc: what follows from plans.
  void Apply(const PlanMaker::Actions& actions, absl::Time now);
  void JournalChange(uint64_t generation, const PlanChange& change);
  void OnCommitted(const PlanAction& action, absl::Time now);
  void WritePlanLine(const std::optional<PlanWatch::Report>& report, absl::Time now);
  void TellPlan();

  // core_recover.cc.
  absl::Status Replay(const v1::JournalRecord& record, absl::Time now);
  absl::Status ReplayHeader(const v1::JournalHeader& header);
  void ReplayTask(const v1::JournalTask& task, absl::Time now);

  // core_status.cc.
  double Epoch() const;
  double EpochsTotal() const;
  double SecondsLeft() const;

  bool Ended() const { return phase_ == v1::JobStatus::DONE || phase_ == v1::JobStatus::FAILED; }
  bool Static() const { return config_.data().dispatch() == v1::DataConfig::STATIC; }
  double Seconds(absl::Time now) const { return training_ ? absl::ToDoubleSeconds(now - training_start_) : 0; }
  void Send(const v1::TaskId& task, v1::Directive directive);
  void SendStop(const v1::TaskId& task, absl::string_view error);
  void SendToAll(v1::TaskId::Role role, const v1::Directive& directive);
  void Journal(v1::JournalRecord record, bool durable);
  void JournalTaskState(const v1::TaskId& task);
  void JournalPhase(v1::JobStatus::Phase phase, absl::Time since);
  void Metrics(v1::RunRecordLine line) { actions_.push_back(AppendMetrics{std::move(line)}); }
  void Log(char severity, std::string text) { actions_.push_back(LogLine{severity, std::move(text)}); }
  Actions TakeActions() { return std::exchange(actions_, {}); }

  const v1::JobConfig config_;
  const Options options_;
  uint64_t job_fingerprint_;
  std::vector<v1::ChunkPlacement> chunks_;
  Actions actions_;

  v1::JobStatus::Phase phase_ = v1::JobStatus::STARTING;
  std::string error_;
  absl::Time last_tick_;
  Membership membership_;
  int64_t train_examples_ = 0;
  // All tasks were there and plan 1 is decided; from here on a lost server ends the job.
  bool placed_ = false;
  // Who was waited for when tasks were last told.
  std::string told_waiting_;
  // TRAINING began (and may have ended).
  bool training_ = false;
  absl::Time training_start_;
  absl::Time training_end_ = absl::InfiniteFuture();
  absl::Time last_line_;

  // Present once placed_.
  std::optional<PlanMaker> plan_maker_;
  std::optional<ShardDispatcher> dispatcher_;
  ModePolicy policy_;
  PlanWatch watch_;
  // The plan that all servers hold; generation 0 before plan 1 does.
  v1::Plan held_plan_;
  // Plans up to this one have their line in the run record.
  uint64_t recorded_generation_ = 0;

  // Of the last trace that was asked for; ids grow, over restarts too.
  uint64_t trace_id_ = 0;

  JobProgress progress_;
  EvaluationSchedule evaluations_;
  // Some worker has left because it had done its last step.
  bool worker_done_ = false;
  absl::Time workers_gone_ = absl::InfiniteFuture();

  // The checkpoint being written and the servers that have it; empty name: none.
  std::string checkpoint_;
  std::set<uint32_t> checkpoint_done_;
  // Why the job is to end, and since when, while checkpoint "stopped" is written.
  std::optional<std::string> stop_reason_;
  absl::Time stopping_since_;
  absl::Time evaluator_seen_;
  absl::Time finishing_since_;
  absl::Time ended_at_;
  bool finish_sent_ = false;

  // For operators.
  v1::JobCounts counts_;

  // Recover: the announcement without a decision.
  std::optional<std::pair<uint64_t, PlanChange>> announced_;
  size_t members_decided_ = 0;
  v1::Plan recovered_plan_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_COORDINATOR_CORE_H_
