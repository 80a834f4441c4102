#ifndef RUBATO_COORDINATOR_RULES_JOB_END_H_
#define RUBATO_COORDINATOR_RULES_JOB_END_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "coordinator/rules/checkpoint_round.h"
#include "coordinator/rules/cut_keeper.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"
#include "coordinator/rules/plan_keeper.h"

namespace rubato::coordinator {

// How a job ends: DONE or FAILED, Stop to everybody, and the wait until they have left. A stop on request
// has the weights written first. Pure.
class JobEnd {
 public:
  // All outlive it.
  JobEnd(JobState* job, Outbox* out, PlanKeeper* plans, CheckpointRound* checkpoints, CutKeeper* cuts)
      : job_(job), out_(out), plans_(plans), checkpoints_(checkpoints), cuts_(cuts) {}

  // Each does nothing when the job has ended.
  void Done(absl::Time now);
  void Fail(const std::string& error, absl::Time now);
  // Somebody asks for the end. A checkpoint is written first, for at most cluster.wait_timeout_seconds: while the job
  // trains a cut, "stopped"; then "final", without an evaluation. A second request does not wait for it, and both
  // reasons are told then. `reason` says who asked.
  void RequestStop(const std::string& reason, absl::Time now);

  // Checkpoint "final" is complete.
  void OnLastCheckpoint(absl::Time now);
  // A server could not write `done.name`.
  void OnCheckpointFailed(const v1::TaskId& server, const v1::CheckpointDone& done, absl::Time now);
  // Each tick: ends the job when "stopped" is complete, or when a checkpoint has been waited for too long;
  // `waiting_for` says for whom.
  void CheckStop(absl::FunctionRef<std::string()> waiting_for, absl::Time now);
  // Ended(): over when all tasks have left, or after two seconds.
  void CheckFarewell(absl::Time now);

 private:
  // With these weights, as stop_reason_ wanted.
  void EndStopped(const std::string& checkpoint, absl::Time now);
  void End(v1::JobStatus::Phase phase, const v1::Stop& stop, absl::Time now);

  JobState* const job_;
  Outbox* const out_;
  PlanKeeper* const plans_;
  CheckpointRound* const checkpoints_;
  CutKeeper* const cuts_;
  // Why the job is to end, and since when, while its last checkpoint is written.
  std::optional<std::string> stop_reason_;
  absl::Time stop_began_;
  absl::Time ended_at_;
  bool finish_sent_ = false;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_JOB_END_H_
