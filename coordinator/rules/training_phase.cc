#include "coordinator/rules/training_phase.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/local_sgd.h"
#include "common/static_partition.h"
#include "common/task.h"
#include "coordinator/record/run_record.h"
#include "coordinator/rules/journal_records.h"

namespace rubato::coordinator {
namespace {

// A line of progress tells of every member. It is written once a second, and with more members than these more rarely,
// so that what a run leaves of a second does not grow with them.
constexpr int kMembersEachSecond = 64;

absl::Duration LineInterval(const v1::Plan& plan) {
  return absl::Seconds(1) * std::max(1.0, static_cast<double>(plan.members_size()) / kMembersEachSecond);
}

}  // namespace

void TrainingPhase::Begin(absl::Time now) {
  job_->phase = v1::JobStatus::TRAINING;
  job_->training_began = true;
  const bool goes_on = job_->training_start != absl::InfiniteFuture();
  if (!goes_on) job_->training_start = now;
  last_line_ = now;
  cuts_->Begin(now);
  job_->progress.StartInterval(now);
  out_->Journal(PhaseRecord(*job_, job_->training_start), true);
  if (!goes_on) out_->Metrics(StartLine(0, job_->config, job_->train_examples));
  const v1::Plan& plan = job_->held_plan;
  out_->Log('I',
            absl::StrCat(goes_on ? absl::StrCat("training goes on from step ", plan.first_step()) : "training begins",
                         ", ", ModeName(plan.mode(), plan.staleness_bound())));
  out_->SendToAll(v1::TaskId::WORKER, job_->Describe());
  out_->SendToAll(v1::TaskId::EVALUATOR, job_->Describe());
}

absl::Status TrainingPhase::Resume(const std::string& policy_memory, absl::Time now) {
  last_line_ = now;
  cuts_->Begin(now);
  job_->progress.StartInterval(now);
  return policy_->Restore(policy_memory);
}

void TrainingPhase::Continue(absl::Time now) {
  if (now - last_line_ >= LineInterval(job_->held_plan)) {
    last_line_ = now;
    out_->Metrics(ProgressLine(job_->Seconds(now), job_->config, job_->TakeInterval(now), job_->Epoch(),
                               job_->held_plan, job_->progress.ByWorker()));
  }
  const JobSnapshot snapshot = job_->Snapshot(now);
  if (std::optional<PlanChange> change = policy_->Decide(snapshot)) {
    change->policy_memory = policy_->Memory();
    plans_->Apply(job_->plan_maker->RequestChange(*change, now), now);
  }
  plans_->Watch(now);
  cuts_->Continue(now);
  // In SYNC the weights of one step ahead can still be asked for when the request arrives.
  int64_t at_step = job_->held_plan.mode() == v1::SYNC ? snapshot.step + 2 : -1;
  if (at_step >= 0) at_step = std::min(at_step, LastStep());
  evaluations_->AskWhenDue(at_step);
  CheckWorkersGone(now);
}

void TrainingPhase::OnWorkerLeft(const v1::WorkerProgress& last) {
  const int64_t max_steps = job_->config.training().max_steps();
  const bool did_last_step = max_steps > 0 && last.step() + 1 >= max_steps;
  if (job_->IsStatic() || job_->IsOwn() || did_last_step) worker_done_ = true;
}

void TrainingPhase::OnWorkerLost() {
  // Nobody else knows what it had still to do.
  if (job_->IsOwn()) worker_done_ = false;
}

int64_t TrainingPhase::LastStep() const {
  const v1::TrainingConfig& training = job_->config.training();
  const int64_t last = training.max_steps() > 0 ? training.max_steps() : std::numeric_limits<int64_t>::max();
  if (!job_->IsStatic() || training.epochs() == 0) return last;
  const auto members = static_cast<int64_t>(std::max<size_t>(job_->plan_maker->members_decided(), 1));
  return std::min(last, StaticEndStep(job_->held_plan.first_example(), job_->held_plan.first_step(), training.epochs(),
                                      members, ExamplesPerStep(job_->config), job_->train_examples));
}

void TrainingPhase::CheckWorkersGone(absl::Time now) {
  if (job_->phase != v1::JobStatus::TRAINING || !job_->membership.Alive(v1::TaskId::WORKER).empty()) {
    workers_gone_ = absl::InfiniteFuture();
    return;
  }
  if (worker_done_ || (job_->dispatcher && job_->dispatcher->Done())) return next_->Begin(now);
  workers_gone_ = std::min(workers_gone_, now);
  if (now - workers_gone_ < job_->membership.lease()) return;
  std::vector<std::string> names;
  for (const auto& [key, member] : job_->membership.all()) {
    if (member.id.role() != v1::TaskId::WORKER) continue;
    names.push_back(absl::StrCat(TaskName(member.id), ": ", member.reason.empty() ? "left" : member.reason));
  }
  end_->Fail(absl::StrCat("no worker is left and ",
                          job_->IsOwn() ? "the last one did not end by itself" : "the data is not used up", " (",
                          absl::StrJoin(names, "; "), ")"),
             now);
}

}  // namespace rubato::coordinator
