#ifndef RUBATO_COORDINATOR_RULES_TRAINING_PHASE_H_
#define RUBATO_COORDINATOR_RULES_TRAINING_PHASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/rules/cut_keeper.h"
#include "coordinator/rules/evaluation_keeper.h"
#include "coordinator/rules/finishing_phase.h"
#include "coordinator/rules/job_end.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/mode_policy.h"
#include "coordinator/rules/outbox.h"
#include "coordinator/rules/plan_keeper.h"

namespace rubato::coordinator {

// TRAINING: follows the progress, has held-out accuracy measured and the mode changed, until the
// data is used up and the last worker has left. Pure.
class TrainingPhase {
 public:
  // All outlive it. `next` follows, and `end` if no worker is left.
  TrainingPhase(JobState* job, Outbox* out, PlanKeeper* plans, EvaluationKeeper* evaluations, CutKeeper* cuts,
                FinishingPhase* next, JobEnd* end, std::unique_ptr<ModePolicy> policy)
      : job_(job),
        out_(out),
        plans_(plans),
        evaluations_(evaluations),
        cuts_(cuts),
        next_(next),
        end_(end),
        policy_(std::move(policy)) {}

  void Begin(absl::Time now);
  // After a restart, in any phase. InvalidArgument as of ModePolicy::Restore.
  absl::Status Resume(const std::string& policy_memory, absl::Time now);
  // Each tick.
  void Continue(absl::Time now);

  // A worker has left because it has no more to do; `last` is its last heartbeat.
  void OnWorkerLeft(const v1::WorkerProgress& last);
  // One was lost, or was asked to stop.
  void OnWorkerLost();
  // Ends the phase when there is no worker left, which is a failure if the data is not used up for a lease.
  void CheckWorkersGone(absl::Time now);

 private:
  // The last step of the job, as far as it is known before.
  int64_t LastStep() const;

  JobState* const job_;
  Outbox* const out_;
  PlanKeeper* const plans_;
  EvaluationKeeper* const evaluations_;
  CutKeeper* const cuts_;
  FinishingPhase* const next_;
  JobEnd* const end_;
  const std::unique_ptr<ModePolicy> policy_;
  absl::Time last_line_;
  // Some worker has left because it had done its last step. With data of the workers' own: the last one that went.
  bool worker_done_ = false;
  absl::Time workers_gone_ = absl::InfiniteFuture();
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_TRAINING_PHASE_H_
