#include <gtest/gtest.h>

#include "common/config/defaults.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/testing/scenarios.h"

namespace rubato::coordinator {
namespace {

constexpr uint32_t kWorkers = 2;

class SyncThenAsyncPolicyTest : public testing::Test {
 protected:
  SyncThenAsyncPolicyTest() {
    config_.mutable_cluster()->set_workers(kWorkers);
    config_.mutable_training()->set_epochs(10);
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    v1::ConsistencyConfig* consistency = config_.mutable_consistency();
    consistency->set_mode(v1::SYNC);
    consistency->set_policy(v1::ConsistencyConfig::SYNC_THEN_ASYNC);
    // As if it cost nothing.
    consistency->mutable_sync_then_async()->set_cost_max(100);
    FillDefaults(&config_);
    policy_ = MakeSyncThenAsyncPolicy(config_);
    job_.plan.set_generation(1);
    job_.plan.set_mode(v1::SYNC);
    for (uint32_t index = 0; index < kWorkers; ++index) {
      job_.plan.add_members()->set_index(index);
      job_.workers.push_back({.index = index,
                              .generation = 1,
                              .mean_step_seconds = 0.4,
                              .work_seconds = std::vector<double>(10, index == 0 ? 0.1 : 0.4)});
    }
    job_.training_loss = 1;
    EXPECT_FALSE(Window(0).has_value()) << "the first one begins";
  }

  std::optional<PlanChange> Window(double epoch) {
    job_.epoch = epoch;
    job_.step += 50;
    job_.seconds += 5;
    return policy_->Decide(job_);
  }
  std::optional<PlanChange> ThreeWindows(double epoch) {
    EXPECT_FALSE(Window(epoch).has_value());
    EXPECT_FALSE(Window(epoch).has_value());
    return Window(epoch);
  }
  void Enter(const PlanChange& change) {
    job_.plan.set_generation(job_.plan.generation() + 1);
    job_.plan.set_mode(change.mode);
    for (JobSnapshot::Worker& worker : job_.workers) worker.generation = job_.plan.generation();
    EXPECT_FALSE(Window(5).has_value()) << "a window begins with a plan";
  }

  v1::JobConfig config_;
  std::unique_ptr<ModePolicy> policy_;
  JobSnapshot job_;
};

TEST_F(SyncThenAsyncPolicyTest, LeavesSyncAfterItsShare) {
  for (int window = 0; window < 10; ++window) EXPECT_FALSE(Window(4.9).has_value());
  const std::optional<PlanChange> change = ThreeWindows(5);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::ASYNC);
  EXPECT_EQ(change->learning_rate_scale, 0.5);
  EXPECT_EQ(change->reason,
            "sync_then_async: 50 % of the training is done, and without waiting for each other the workers make 12.5 "
            "steps/s instead of 5");
}

TEST_F(SyncThenAsyncPolicyTest, LeavesSyncBeforeItsShareWhereThatCostsTooMuch) {
  // 12.5 steps/s instead of 5: SYNC costs 1.5 times the part that it has trained.
  config_.mutable_consistency()->mutable_sync_then_async()->set_cost_max(0.15);
  policy_ = MakeSyncThenAsyncPolicy(config_);
  EXPECT_FALSE(Window(0.5).has_value());
  EXPECT_FALSE(Window(0.9).has_value());
  job_.epoch = 1.1;
  job_.step += 2;
  EXPECT_FALSE(policy_->Decide(job_).has_value()) << "the steps are the same as before";
  job_.step += 8;
  const std::optional<PlanChange> change = policy_->Decide(job_);
  ASSERT_TRUE(change.has_value()) << "at once, and not at the end of a window";
  EXPECT_EQ(change->mode, v1::ASYNC);
}

TEST_F(SyncThenAsyncPolicyTest, WhereThereIsNothingToGainItCostsNothing) {
  config_.mutable_consistency()->mutable_sync_then_async()->set_cost_max(1e-6);
  policy_ = MakeSyncThenAsyncPolicy(config_);
  for (JobSnapshot::Worker& worker : job_.workers) worker.work_seconds.assign(10, 0.38);
  for (int window = 0; window < 10; ++window) EXPECT_FALSE(Window(9).has_value());
}

TEST_F(SyncThenAsyncPolicyTest, StaysWhereWorkersAreEqual) {
  for (JobSnapshot::Worker& worker : job_.workers) worker.work_seconds.assign(10, 0.38);
  for (int window = 0; window < 10; ++window) EXPECT_FALSE(Window(9).has_value());
}

TEST_F(SyncThenAsyncPolicyTest, SspIsWhatTheConfigMayName) {
  config_.mutable_consistency()->mutable_sync_then_async()->set_then(v1::SSP);
  config_.mutable_consistency()->mutable_sync_then_async()->set_staleness_bound(3);
  policy_ = MakeSyncThenAsyncPolicy(config_);
  EXPECT_FALSE(Window(5).has_value()) << "begins";
  const std::optional<PlanChange> change = ThreeWindows(5);
  EXPECT_EQ(change->mode, v1::SSP);
  EXPECT_EQ(change->staleness_bound, 3);
}

TEST_F(SyncThenAsyncPolicyTest, TheShareIsOfStepsWhereThereAreNoEpochs) {
  config_.mutable_training()->set_epochs(0);
  config_.mutable_training()->set_max_steps(100000);
  policy_ = MakeSyncThenAsyncPolicy(config_);
  EXPECT_FALSE(Window(9).has_value());
  for (int window = 0; window < 5; ++window) EXPECT_FALSE(Window(9).has_value());
  job_.step = 50000;
  EXPECT_TRUE(ThreeWindows(9).has_value());
}

TEST_F(SyncThenAsyncPolicyTest, GoesBackForGoodWhenTheLossRises) {
  for (int window = 0; window < 5; ++window) Window(1);
  Enter(*ThreeWindows(5));
  EXPECT_FALSE(Window(5).has_value());
  job_.training_loss = 3;
  const std::optional<PlanChange> change = ThreeWindows(5);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::SYNC);
  EXPECT_EQ(change->learning_rate_scale, 1);
  Enter(*change);
  job_.training_loss = 1;
  for (int window = 0; window < 10; ++window) EXPECT_FALSE(Window(9).has_value());
}

TEST_F(SyncThenAsyncPolicyTest, ARestartKnowsWhereItIs) {
  const PlanChange change = *ThreeWindows(5);
  const std::unique_ptr<ModePolicy> restarted = MakeSyncThenAsyncPolicy(config_);
  ASSERT_TRUE(restarted->Restore(policy_->Memory()).ok());
  policy_ = MakeSyncThenAsyncPolicy(config_);
  ASSERT_TRUE(policy_->Restore(restarted->Memory()).ok());
  Enter(change);
  job_.training_loss = std::nan("");
  EXPECT_EQ(Window(5)->mode, v1::SYNC);
  EXPECT_EQ(policy_->Restore("ab").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(policy_->Restore("x").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SyncThenAsyncPolicyTest, LeavesAnOperatorsModeAlone) {
  job_.plan.set_mode(v1::SSP);
  for (int window = 0; window < 10; ++window) EXPECT_FALSE(Window(9).has_value());
}

// In the model of training.

TEST(SyncThenAsyncPolicyTrainingTest, WinsWhereOneWorkerIsSlow) {
  const TrainingScenario scenario = ScenarioNamed("one slow", 1);
  const TrainingOutcome sync = Train(scenario, Rules(v1::SYNC), 1);
  EXPECT_LT(Train(scenario, SyncThenAsyncRules(0), 1).seconds_to_target, 0.8 * sync.seconds_to_target);
}

TEST(SyncThenAsyncPolicyTrainingTest, StaysItsHandWhereWorkersAreEqual) {
  EXPECT_TRUE(Train(ScenarioNamed("equal", 1), SyncThenAsyncRules(0), 1).changes.empty());
}

}  // namespace
}  // namespace rubato::coordinator
