#ifndef RUBATO_COORDINATOR_RULES_COORDINATOR_CORE_H_
#define RUBATO_COORDINATOR_RULES_COORDINATOR_CORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/rules/action.h"
#include "coordinator/rules/checkpoint_round.h"
#include "coordinator/rules/cut_keeper.h"
#include "coordinator/rules/evaluation_keeper.h"
#include "coordinator/rules/finishing_phase.h"
#include "coordinator/rules/job_end.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/mode_policy.h"
#include "coordinator/rules/outbox.h"
#include "coordinator/rules/plan_keeper.h"
#include "coordinator/rules/recovery.h"
#include "coordinator/rules/rollback.h"
#include "coordinator/rules/roster.h"
#include "coordinator/rules/shard_keeper.h"
#include "coordinator/rules/starting_phase.h"
#include "coordinator/rules/training_phase.h"
#include "proto/coordinator.pb.h"
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
// It brings each event to the part that it concerns. A phase of the job is a part, and begins the one that follows:
//   STARTING   all servers and cluster.workers workers register; chunks are placed; plan 1 is taken by all servers and
//              the initial weights, which a worker of a client's job assigns, are written as checkpoint "step0". Then
//              workers learn the plan.
//   TRAINING   until the data is used up and the last worker has left.
//   FINISHING  final evaluation, checkpoint "final".
//   A stop on request has checkpoint "stopped" written before FAILED.
//   When a server is lost, the job goes back to its last checkpoint: the core ends with RestartCore, and the next one
//   is STARTING. DONE, FAILED  Stop to all; over when they have left, or after two seconds.
//
// With DYNAMIC dispatch the data is used up when every shard is finished, with OWN when the last worker has left by
// itself. Workers know their last step, of STATIC dispatch or training.max_steps, and leave by themselves.
class CoordinatorCore {
 public:
  using Options = JobOptions;

  // InvalidArgument when the model has no shape or cannot be cut into chunks.
  static absl::StatusOr<std::unique_ptr<CoordinatorCore>> Create(const Options& options);
  CoordinatorCore(const CoordinatorCore&) = delete;
  CoordinatorCore& operator=(const CoordinatorCore&) = delete;

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
  // Ends the job as stopped; `reason` says who asked. While it trains the servers write checkpoint "stopped" first, for
  // at most cluster.wait_timeout_seconds; a second request does not wait for it. Does nothing when the job has ended.
  Actions RequestStop(const std::string& reason, absl::Time now);
  // Ends the job as failed with `reason`, at once and without a checkpoint.
  Actions Abort(const std::string& reason, absl::Time now);

  // An operator waits for a checkpoint; `ticket` is not 0. Its AnswerCheckpoint comes at once (FailedPrecondition), or
  // when the checkpoint is complete, or Aborted when it was given up.
  Actions RequestCheckpoint(uint64_t ticket, absl::Time now);

  // Tells all servers and workers to record a trace; `reply` has its id and who was told. InvalidArgument: the time is
  // out of range. FailedPrecondition: the job is not TRAINING.
  absl::StatusOr<Actions> RequestTrace(const v1::TraceJobRequest& request, v1::TraceJobReply* reply, absl::Time now);

  // Writes down that `by` has asked for something, and whether it was refused: into the log and, since training began,
  // into the run record.
  Actions NoteRequest(absl::string_view request, absl::string_view by, const absl::Status& refused, absl::Time now);

  v1::JobStatus Status(absl::Time now) const;
  // What the job waits for now, as text; empty when it does not wait.
  std::string WaitingFor() const;
  v1::JobStatus::Phase phase() const { return job_.phase; }
  const v1::JobCounts& counts() const { return job_.counts; }
  // Generation of the plan that holds, 0 for none, and the furthest worker's step.
  std::pair<uint64_t, int64_t> Position() const { return {job_.held_plan.generation(), job_.progress.Totals().step}; }

 private:
  CoordinatorCore(const Options& options, std::vector<v1::ChunkPlacement> chunks, std::unique_ptr<ModePolicy> policy);

  void Route(const v1::TaskMessage& message, absl::Time now);
  void OnCheckpointDone(const v1::TaskId& server, const v1::CheckpointDone& done, absl::Time now);
  // After each event.
  Actions TakeActions(absl::Time now);
  // A task knows of a later coordinator: this one has lost its job to it, and does nothing any more.
  void GiveWay(const v1::TaskMessage& message);

  JobState job_;
  Outbox out_;
  PlanKeeper plans_;
  EvaluationKeeper evaluations_;
  CheckpointRound checkpoints_;
  CutKeeper cuts_;
  ShardKeeper shards_;
  Rollback rollback_;
  // In the order in which a job comes to them, from the end.
  JobEnd end_;
  FinishingPhase finishing_;
  TrainingPhase training_;
  StartingPhase starting_;
  Roster roster_;
  absl::Time last_tick_;
  // Of the last trace that was asked for; ids grow, over restarts too.
  uint64_t trace_id_ = 0;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_COORDINATOR_CORE_H_
