#ifndef RUBATO_COORDINATOR_RULES_STARTING_PHASE_H_
#define RUBATO_COORDINATOR_RULES_STARTING_PHASE_H_

#include <string>

#include "absl/time/time.h"
#include "coordinator/rules/checkpoint_round.h"
#include "coordinator/rules/job_end.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"
#include "coordinator/rules/plan_keeper.h"

namespace rubato::coordinator {

// STARTING: waits for all servers and cluster.workers workers, places the chunks, has the first plan taken by all
// servers, and then the initial weights written as checkpoint "step0". A job that goes back to a checkpoint waits for
// them for cluster.server_grace_seconds, then for one of each, and writes nothing. In a client's job that begins with
// nothing, a worker is named that assigns the weights, and another one if that one is lost: servers write "step0" when
// they have them. Pure.
class StartingPhase {
 public:
  // All outlive it.
  StartingPhase(JobState* job, Outbox* out, PlanKeeper* plans, CheckpointRound* checkpoints, JobEnd* end)
      : job_(job), out_(out), plans_(plans), checkpoints_(checkpoints), end_(end) {}

  // Names of those that the job waits for before it is placed; empty when all are there.
  std::string MissingTasks() const;
  // Places the job when all are there.
  void PlaceWhenComplete(absl::Time now);
  // The first plan, from the config or the checkpoint.
  void BeginFirstPlan(absl::Time now);
  // After each event: checkpoint "step0" follows once all servers hold a plan, with the weights that a worker assigns.
  void WriteFirstCheckpoint(absl::Time now);
  // The first plan is held by all servers of a job that went back: it can train.
  bool CanGoOn() const { return WentBack() && !job_->AwaitsWeights() && job_->held_plan.generation() != 0; }
  // Workers of the job have been told who assigns its weights.
  bool assigning() const { return job_->AwaitsWeights() && job_->assigner.has_value(); }
  // Each tick: tells tasks for whom they wait, and fails after cluster.start_timeout_seconds.
  void Continue(absl::Time now);

 private:
  void TellWaiting();
  // Tells all of the worker that assigns the weights, if it is another one than before.
  void NameAssigner(absl::Time now);
  void CheckAssigned(absl::Time now);
  bool WentBack() const { return job_->counts.rollbacks_total() > 0; }
  bool MayPlace(absl::Time now) const;

  JobState* const job_;
  Outbox* const out_;
  PlanKeeper* const plans_;
  CheckpointRound* const checkpoints_;
  JobEnd* const end_;
  // Who was waited for when tasks were last told.
  std::string told_waiting_;
  // When job_->assigner was named.
  absl::Time named_at_ = absl::InfiniteFuture();
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_STARTING_PHASE_H_
