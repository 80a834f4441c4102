#include <gtest/gtest.h>

#include "common/config/defaults.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/testing/scenarios.h"

namespace rubato::coordinator {
namespace {

constexpr uint32_t kWorkers = 4;

class QuorumPolicyTest : public testing::Test {
 protected:
  QuorumPolicyTest() {
    config_.mutable_cluster()->set_workers(kWorkers);
    config_.mutable_training()->set_batch_size(10);
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    v1::ConsistencyConfig* consistency = config_.mutable_consistency();
    consistency->set_mode(v1::SYNC);
    consistency->set_policy(v1::ConsistencyConfig::QUORUM);
    consistency->mutable_policy_pace()->set_windows_of_rest(1);
    FillDefaults(&config_);
    policy_ = MakeQuorumPolicy(config_);
    job_.plan.set_generation(1);
    job_.plan.set_mode(v1::SYNC);
    for (uint32_t index = 0; index < kWorkers; ++index) {
      job_.plan.add_members()->set_index(index);
      job_.workers.push_back({.index = index, .generation = 1});
      SetStep(index, 0.1);
    }
    job_.training_loss = 1;
    EXPECT_FALSE(Window().has_value()) << "the first one begins";
  }

  // All of the worker's latest steps took so long.
  void SetStep(uint32_t worker, double seconds) {
    job_.workers[worker].work_seconds.assign(10, seconds);
    double slowest = 0;
    for (const JobSnapshot::Worker& each : job_.workers) slowest = std::max(slowest, each.work_seconds.front());
    for (JobSnapshot::Worker& each : job_.workers) each.mean_step_seconds = slowest;
  }
  std::optional<PlanChange> Window() {
    job_.step += 50;
    job_.seconds += 5;
    return policy_->Decide(job_);
  }
  // The third window that says so changes the quorum.
  // The first change that they bring.
  std::optional<PlanChange> ThreeWindows() {
    for (int window = 0; window < 3; ++window) {
      if (std::optional<PlanChange> change = Window()) return change;
    }
    return std::nullopt;
  }
  void Enter(const PlanChange& change) {
    job_.plan.set_generation(job_.plan.generation() + 1);
    job_.plan.set_mode(change.mode);
    job_.plan.set_quorum(change.quorum);
    for (JobSnapshot::Worker& worker : job_.workers) worker.generation = job_.plan.generation();
    EXPECT_FALSE(Window().has_value()) << "a window begins with a plan";
  }

  v1::JobConfig config_;
  std::unique_ptr<ModePolicy> policy_;
  JobSnapshot job_;
};

TEST_F(QuorumPolicyTest, LeavesASlowMemberBehind) {
  SetStep(3, 0.4);
  const std::optional<PlanChange> change = Window();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::SYNC);
  EXPECT_EQ(change->quorum, 3u);
  EXPECT_EQ(change->learning_rate_scale, 0.75);
  EXPECT_EQ(
      change->reason,
      "quorum: with 3 of 4 contributions a step takes 100 ms instead of 400 with 4, and training is 3.00 times as "
      "fast");
}

// Its clients batch as they like.
TEST_F(QuorumPolicyTest, ServesAJobWhoseBatchesAreNotKnown) {
  config_.mutable_training()->clear_batch_size();
  policy_ = MakeQuorumPolicy(config_);
  EXPECT_FALSE(Window().has_value()) << "begins";
  for (int window = 0; window < 5; ++window) EXPECT_FALSE(Window().has_value()) << "nobody is slow";
  SetStep(3, 0.4);
  EXPECT_EQ(ThreeWindows()->quorum, 3u);
}

TEST_F(QuorumPolicyTest, StaysWhereMembersAreEqual) {
  for (int window = 0; window < 20; ++window) EXPECT_FALSE(Window().has_value());
}

// 3 of 4 examples in 0.76 of the time: nothing to be gained.
TEST_F(QuorumPolicyTest, StaysWhereAnExampleLostIsAsMuchAsTheTimeWon) {
  SetStep(3, 0.132);
  for (int window = 0; window < 20; ++window) EXPECT_FALSE(Window().has_value());
}

TEST_F(QuorumPolicyTest, NeverWaitsForFewerThanItsShare) {
  SetStep(2, 4);
  SetStep(3, 4);
  for (int window = 0; window < 20; ++window) EXPECT_FALSE(Window().has_value()) << "3 of 4 are not faster than 4";
}

TEST_F(QuorumPolicyTest, TakesAMemberBackWhenItIsFastAgain) {
  SetStep(3, 0.4);
  Enter(*ThreeWindows());
  SetStep(3, 0.1);
  EXPECT_FALSE(Window().has_value()) << "rests";
  const std::optional<PlanChange> change = ThreeWindows();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->quorum, 0u);
  EXPECT_EQ(change->learning_rate_scale, 1);
}

TEST_F(QuorumPolicyTest, WithALowNoiseScaleFewContributionsAreEnough) {
  config_.mutable_consistency()->mutable_quorum_policy()->set_noise_scale(0.001);
  config_.mutable_consistency()->mutable_quorum_policy()->set_share_min(0.25);
  policy_ = MakeQuorumPolicy(config_);
  for (uint32_t worker = 0; worker < kWorkers; ++worker) SetStep(worker, 0.1 * (1 + 0.3 * worker));
  EXPECT_FALSE(Window().has_value()) << "begins";
  EXPECT_EQ(ThreeWindows()->quorum, 1u);
}

TEST_F(QuorumPolicyTest, GoesBackForGoodWhenTheLossRises) {
  SetStep(3, 0.4);
  Enter(*ThreeWindows());
  job_.training_loss = 2;
  const std::optional<PlanChange> change = ThreeWindows();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->quorum, 0u);
  EXPECT_EQ(change->reason,
            "quorum: the loss has risen since the last change, so the job goes back to the quorum of its config");
  Enter(*change);
  for (int window = 0; window < 20; ++window) EXPECT_FALSE(Window().has_value());
  const std::unique_ptr<ModePolicy> restarted = MakeQuorumPolicy(config_);
  ASSERT_TRUE(restarted->Restore(policy_->Memory()).ok());
  for (int window = 0; window < 20; ++window) {
    job_.step += 50;
    job_.seconds += 5;
    EXPECT_FALSE(restarted->Decide(job_).has_value()) << "it has not forgotten";
  }
}

TEST_F(QuorumPolicyTest, LeavesAnOperatorsModeAlone) {
  SetStep(3, 0.4);
  job_.plan.set_mode(v1::ASYNC);
  for (int window = 0; window < 20; ++window) EXPECT_FALSE(Window().has_value());
}

TEST_F(QuorumPolicyTest, WaitsForMembersThatAreNotInThePlanYet) {
  SetStep(3, 0.4);
  job_.workers[1].generation = 0;
  for (int window = 0; window < 20; ++window) EXPECT_FALSE(Window().has_value());
}

TEST_F(QuorumPolicyTest, AStrangeMemoryIsRefused) {
  for (const char* memory : {"x", "1", "1 2", "-1 0"}) {
    EXPECT_EQ(policy_->Restore(memory).code(), absl::StatusCode::kInvalidArgument) << memory;
  }
}

// In the model of training.

double TimeRatio(const std::string& scenario, const v1::ConsistencyConfig& rules, const v1::ConsistencyConfig& other) {
  double ratio = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const TrainingScenario training = ScenarioNamed(scenario, seed);
    ratio += Train(training, rules, seed).seconds_to_target / Train(training, other, seed).seconds_to_target / 5;
  }
  return ratio;
}

TEST(QuorumPolicyTrainingTest, WinsWhereStepsHaveAHeavyTail) {
  EXPECT_LT(TimeRatio("pareto 1.5", QuorumRules(), Rules(v1::SYNC)), 0.8);
  EXPECT_LT(TimeRatio("one slow", QuorumRules(), Rules(v1::SYNC)), 0.8);
}

TEST(QuorumPolicyTrainingTest, StaysItsHandWhereWorkersAreEqual) {
  EXPECT_TRUE(Train(ScenarioNamed("equal", 1), QuorumRules(), 1).changes.empty());
  EXPECT_TRUE(Train(ScenarioNamed("half slow", 1), QuorumRules(), 1).changes.empty());
}

}  // namespace
}  // namespace rubato::coordinator
