#include "coordinator/rules/finishing_phase.h"

#include <algorithm>

#include "coordinator/record/run_record.h"
#include "coordinator/rules/journal_records.h"

namespace rubato::coordinator {

void FinishingPhase::Begin(absl::Time now) {
  job_->phase = v1::JobStatus::FINISHING;
  began_ = now;
  job_->training_end = now;
  out_->Journal(PhaseRecord(*job_, now), true);
  out_->Log('I', job_->IsOwn() ? "all workers have left" : "the data is used up and all workers have left");
  out_->Metrics(ProgressLine(job_->Seconds(now), job_->config, job_->TakeInterval(now), job_->Epoch(), job_->held_plan,
                             job_->progress.ByWorker()));
  plans_->Flush(now);
  plans_->Apply(job_->plan_maker->Close(), now);
  if (job_->config.cluster().evaluators() > 0) evaluations_->AskForFinal();
}

void FinishingPhase::Resume(absl::Time now) {
  began_ = now;
  evaluator_seen_ = now;
}

void FinishingPhase::Continue(absl::Time now) {
  if (!checkpoints_->name().empty() && checkpoints_->name() != kFirstCheckpoint) return;
  const v1::ClusterConfig& cluster = job_->config.cluster();
  if (cluster.evaluators() > 0 && !job_->evaluations.FinalDone()) {
    if (!job_->membership.Alive(v1::TaskId::EVALUATOR).empty()) evaluator_seen_ = now;
    absl::Time give_up = std::max(began_, evaluator_seen_) + 2 * job_->membership.lease();
    if (job_->membership.Find(v1::TaskId::EVALUATOR, 0) == nullptr) {
      give_up = std::max(give_up, job_->start + absl::Seconds(cluster.start_timeout_seconds()));
    }
    const absl::Time hung = began_ + absl::Seconds(cluster.wait_timeout_seconds());
    if (now < std::min(give_up, hung)) return;
    out_->Log('W', "the final weights are not evaluated: no evaluator has answered");
  }
  checkpoints_->Begin(kLastCheckpoint);
}

}  // namespace rubato::coordinator
