#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "coordinator/rules/policies/testing/measured_job.h"
#include "coordinator/rules/policies/testing/scenarios.h"

namespace rubato::coordinator {
namespace {

using Sizes = std::map<uint32_t, uint32_t>;

v1::ConsistencyConfig BalanceRules() { return MeasuringRules(v1::ConsistencyConfig::BALANCE); }

// Examples a second 50, 50, 100, 150.
MeasuredJob Uneven() {
  MeasuredJob job(BalanceRules());
  job.SetStep(0, 0.21);
  job.SetStep(1, 0.21);
  job.SetStep(2, 0.105);
  job.SetStep(3, 0.07);
  return job;
}

TEST(BalancePolicyTest, BatchesFollowTheSpeeds) {
  MeasuredJob job = Uneven();
  job.snapshot().plan.set_learning_rate_scale(0.5);  // An operator's.
  const std::optional<PlanChange> change = job.Windows(4);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::SYNC);
  EXPECT_EQ(change->quorum, 0u);
  EXPECT_EQ(change->batch_sizes, (Sizes{{0, 6}, {1, 6}, {2, 11}, {3, 17}}));
  EXPECT_EQ(change->learning_rate_scale, 0.5);
  EXPECT_EQ(change->reason,
            "balance: with batches of 6 to 17 examples, in proportion to the workers' speeds, a step takes 126 ms "
            "instead of 210");
}

TEST(BalancePolicyTest, NobodyGetsMoreThanItHasMemoryFor) {
  v1::ConsistencyConfig rules = BalanceRules();
  rules.mutable_balance()->set_batch_max(1.2);
  MeasuredJob job(rules);
  job.SetStep(0, 0.4);
  EXPECT_EQ(job.Windows(4)->batch_sizes, (Sizes{{0, 4}, {1, 12}, {2, 12}, {3, 12}}));
}

TEST(BalancePolicyTest, StaysWhereMembersAreEqual) {
  MeasuredJob job(BalanceRules());
  job.SetStep(0, 0.104);
  EXPECT_FALSE(job.Windows(20).has_value());
}

TEST(BalancePolicyTest, MembersThatAreSlowByChanceStayAsTheyAre) {
  MeasuredJob job(BalanceRules());
  for (uint32_t window = 0; window < 20; ++window) {
    job.SetStep(window % 4, 0.2);
    EXPECT_FALSE(job.Window().has_value());
    job.SetStep(window % 4, 0.1);
  }
}

TEST(BalancePolicyTest, WhatBringsWhatItPromisedStays) {
  MeasuredJob job = Uneven();
  job.Enter(*job.Windows(4));
  for (uint32_t worker = 0; worker < 4; ++worker) job.SetStep(worker, 0.125);
  EXPECT_FALSE(job.Windows(20).has_value());
}

// It is slow for another reason than what it computes.
TEST(BalancePolicyTest, WhatDoesNotIsTakenBack) {
  MeasuredJob job(BalanceRules());
  job.SetStep(0, 0.4);
  job.Enter(*job.Windows(4));
  EXPECT_EQ(job.snapshot().plan.batch_sizes(0), 3u);
  job.SetStep(0, 0.4);
  const std::optional<PlanChange> change = job.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_TRUE(change->batch_sizes.empty());
  EXPECT_EQ(change->reason.substr(0, 64), "balance: a step takes 400 ms and not 130 as it would if workers ");
}

TEST(BalancePolicyTest, BalancesAgainWhenSpeedsChange) {
  MeasuredJob job = Uneven();
  job.Enter(*job.Windows(4));
  for (uint32_t worker = 0; worker < 4; ++worker) job.SetStep(worker, 0.125);
  EXPECT_FALSE(job.Windows(3).has_value()) << "is checked";
  job.SetStep(3, 0.25);
  EXPECT_FALSE(job.Window().has_value()) << "rests";
  const std::optional<PlanChange> change = job.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_LT(change->batch_sizes.at(3), 17u);
}

TEST(BalancePolicyTest, LeavesAnOperatorsRulesAlone) {
  MeasuredJob job = Uneven();
  job.snapshot().plan.set_quorum(3);
  EXPECT_FALSE(job.Windows(10).has_value());
  job.snapshot().plan.set_quorum(0);
  job.snapshot().plan.set_mode(v1::ASYNC);
  EXPECT_FALSE(job.Windows(10).has_value());
}

TEST(BalancePolicyTest, ARestartCountsOn) {
  MeasuredJob job = Uneven();
  job.Enter(*job.Windows(4));
  EXPECT_EQ(job.policy().Memory(), "1");
  job.Restart();
  EXPECT_EQ(job.policy().Memory(), "1");
  EXPECT_EQ(job.policy().Restore("x").code(), absl::StatusCode::kInvalidArgument);
}

// In the model of training.

TEST(BalancePolicyTrainingTest, WinsWhereWorkersDiffer) {
  for (const char* scenario : {"speeds 1, 1, 2, 3", "half slow", "one slow"}) {
    const TrainingScenario training = ScenarioNamed(scenario, 1);
    const TrainingOutcome balanced = Train(training, BalanceRules(), 1);
    EXPECT_LT(balanced.seconds_to_target, 0.8 * Train(training, Rules(v1::SYNC), 1).seconds_to_target) << scenario;
    EXPECT_EQ(balanced.changes.size(), 1u) << scenario;
  }
}

// All examples of a step by what all workers compute a second: no step can be shorter.
TEST(BalancePolicyTrainingTest, AStepTakesLittleMoreThanItMust) {
  const TrainingOutcome balanced = Train(ScenarioNamed("speeds 1, 1, 2, 3", 1), BalanceRules(), 1);
  ASSERT_FALSE(balanced.changes.empty());
  double longest = 0, examples = 0, speeds = 0;
  for (const auto& [index, size] : balanced.changes[0].batch_sizes) {
    const double speed = std::array{1, 1, 2, 3}[index % 4];
    longest = std::max(longest, size / speed);
    examples += size;
    speeds += speed;
  }
  EXPECT_EQ(examples, 8 * 32);
  EXPECT_LT(longest, 1.1 * examples / speeds);
}

TEST(BalancePolicyTrainingTest, StaysItsHandWhereWorkersAreEqual) {
  EXPECT_TRUE(Train(ScenarioNamed("equal", 1), BalanceRules(), 1).changes.empty());
}

// A smaller batch does not bring it nearer.
TEST(BalancePolicyTrainingTest, TakesBackWhatIsNoUse) {
  const TrainingScenario training = ScenarioNamed("one far", 1);
  const TrainingOutcome balanced = Train(training, BalanceRules(), 1);
  ASSERT_GE(balanced.changes.size(), 2u);
  EXPECT_TRUE(balanced.changes[1].batch_sizes.empty());
  EXPECT_LT(balanced.seconds_to_target, 1.05 * Train(training, Rules(v1::SYNC), 1).seconds_to_target);
}

}  // namespace
}  // namespace rubato::coordinator
