#include "coordinator/rules/policies/testing/measured_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "common/config/batch_sizes.h"
#include "common/config/defaults.h"
#include "coordinator/rules/policies/policies.h"

namespace rubato::coordinator {
namespace {

constexpr uint32_t kWorkers = 4;
constexpr size_t kSteps = 10;

}  // namespace

MeasuredJob::MeasuredJob(const v1::ConsistencyConfig& rules, const v1::LearningRateSchedule& schedule) {
  config_.mutable_cluster()->set_workers(kWorkers);
  config_.mutable_training()->set_batch_size(10);
  config_.mutable_training()->set_epochs(10);
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  *config_.mutable_optimizer()->mutable_schedule() = schedule;
  *config_.mutable_consistency() = rules;
  config_.mutable_consistency()->mutable_policy_pace()->set_window_seconds(5);
  config_.mutable_consistency()->mutable_policy_pace()->set_windows_of_rest(1);
  FillDefaults(&config_);
  policy_ = std::move(MakeModePolicy(config_)).value();
  job_.plan.set_generation(1);
  job_.plan.set_mode(rules.mode());
  job_.plan.set_staleness_bound(rules.staleness_bound());
  job_.plan.set_learning_rate_scale(1);
  for (uint32_t index = 0; index < kWorkers; ++index) {
    job_.plan.add_members()->set_index(index);
    job_.plan.add_decided_members(index);
    job_.workers.push_back({.index = index, .generation = 1});
    SetStep(index, 0.1);
  }
  job_.training_loss = 1;
  EXPECT_FALSE(Window().has_value()) << "the first one begins";
}

void MeasuredJob::SetStep(uint32_t worker, double seconds) {
  job_.workers[worker].work_seconds.assign(kSteps, seconds);
  job_.workers[worker].work_rate = static_cast<double>(BatchSize(config_, job_.plan, worker)) / seconds;
  double slowest = 0;
  for (const JobSnapshot::Worker& each : job_.workers) slowest = std::max(slowest, each.work_seconds.front());
  for (JobSnapshot::Worker& each : job_.workers) each.mean_step_seconds = slowest;
}

void MeasuredJob::SetOverhead(double seconds) {
  double slowest = 0;
  for (const JobSnapshot::Worker& each : job_.workers) slowest = std::max(slowest, each.work_seconds.front());
  for (JobSnapshot::Worker& each : job_.workers) each.mean_step_seconds = slowest + seconds;
}

std::optional<PlanChange> MeasuredJob::Window() {
  job_.step += 50;
  job_.seconds += 5;
  job_.pushes += 50.0 * kWorkers;
  job_.staleness_sum += 50.0 * kWorkers * staleness_;
  job_.gradients.spread += 1;
  job_.gradients.lasting_spread += lasting_share_;
  return policy_->Decide(job_);
}

std::optional<PlanChange> MeasuredJob::Windows(int count) {
  for (int window = 1; window < count; ++window) {
    const std::optional<PlanChange> change = Window();
    EXPECT_FALSE(change.has_value()) << "in window " << window << " of " << count << ": " << change->reason;
  }
  return Window();
}

void MeasuredJob::Enter(const PlanChange& change) {
  job_.plan.set_generation(job_.plan.generation() + 1);
  job_.plan.set_mode(change.mode);
  job_.plan.set_staleness_bound(change.staleness_bound);
  job_.plan.set_quorum(change.quorum);
  job_.plan.set_learning_rate_scale(change.learning_rate_scale);
  job_.plan.clear_batch_sizes();
  for (const auto& [index, examples] : change.batch_sizes) job_.plan.add_batch_sizes(examples);
  if (change.sync_every > 0) job_.plan.set_sync_every(change.sync_every);
  for (JobSnapshot::Worker& worker : job_.workers) worker.generation = job_.plan.generation();
  EXPECT_FALSE(Window().has_value()) << "a window begins with a plan";
}

void MeasuredJob::Restart() {
  std::unique_ptr<ModePolicy> restarted = std::move(MakeModePolicy(config_)).value();
  EXPECT_TRUE(restarted->Restore(policy_->Memory()).ok());
  policy_ = std::move(restarted);
  EXPECT_FALSE(Window().has_value()) << "a window begins";
}

}  // namespace rubato::coordinator
