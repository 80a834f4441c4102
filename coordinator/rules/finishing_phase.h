#ifndef RUBATO_COORDINATOR_RULES_FINISHING_PHASE_H_
#define RUBATO_COORDINATOR_RULES_FINISHING_PHASE_H_

#include "absl/time/time.h"
#include "coordinator/rules/checkpoint_round.h"
#include "coordinator/rules/evaluation_keeper.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"
#include "coordinator/rules/plan_keeper.h"

namespace rubato::coordinator {

// FINISHING: the data is used up and all workers have left. The last weights are evaluated, then written as checkpoint
// "final". Pure.
class FinishingPhase {
 public:
  // All outlive it.
  FinishingPhase(JobState* job, Outbox* out, PlanKeeper* plans, EvaluationKeeper* evaluations,
                 CheckpointRound* checkpoints)
      : job_(job),
        out_(out),
        plans_(plans),
        evaluations_(evaluations),
        checkpoints_(checkpoints),
        evaluator_seen_(job->start) {}

  void Begin(absl::Time now);
  // After a restart; the phase is FINISHING.
  void Resume(absl::Time now);
  // Each tick: checkpoint "final" when the final evaluation is there, or its evaluator gone for two leases.
  void Continue(absl::Time now);

 private:
  JobState* const job_;
  Outbox* const out_;
  PlanKeeper* const plans_;
  EvaluationKeeper* const evaluations_;
  CheckpointRound* const checkpoints_;
  absl::Time began_;
  absl::Time evaluator_seen_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_FINISHING_PHASE_H_
