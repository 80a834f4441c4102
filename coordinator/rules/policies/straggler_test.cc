#include <gtest/gtest.h>

#include "coordinator/rules/policies/testing/measured_job.h"
#include "coordinator/rules/policies/testing/scenarios.h"

namespace rubato::coordinator {
namespace {

v1::ConsistencyConfig StragglerRules() { return MeasuringRules(v1::ConsistencyConfig::STRAGGLER); }

TEST(StragglerPolicyTest, DoesNotWaitForAMemberThatIsMuchSlower) {
  MeasuredJob job(StragglerRules());
  job.SetStep(2, 0.4);
  const std::optional<PlanChange> change = job.Window();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::SYNC);
  EXPECT_EQ(change->quorum, 3u);
  EXPECT_EQ(change->learning_rate_scale, 0.75);
  EXPECT_EQ(change->reason,
            "straggler: without waiting for worker 2 (400 ms a step) a step takes 100 ms instead of 400");
}

TEST(StragglerPolicyTest, TakesItBackWhenItIsFastAgain) {
  MeasuredJob job(StragglerRules());
  job.SetStep(2, 0.4);
  job.Enter(*job.Window());
  EXPECT_FALSE(job.Windows(10).has_value()) << "it is still slow";
  job.SetStep(2, 0.101);
  const std::optional<PlanChange> change = job.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->quorum, 0u);
  EXPECT_EQ(change->learning_rate_scale, 1);
}

TEST(StragglerPolicyTest, OfEqualMembersSomeAreAlwaysUnderTheMean) {
  MeasuredJob job(StragglerRules());
  job.SetStep(2, 0.104);
  EXPECT_FALSE(job.Windows(20).has_value());
}

TEST(StragglerPolicyTest, HalfOfTheMembersAreNotStragglers) {
  MeasuredJob job(StragglerRules());
  job.SetStep(2, 0.4);
  job.SetStep(3, 0.4);
  EXPECT_FALSE(job.Windows(20).has_value());
}

TEST(StragglerPolicyTest, LeavesOutNoMoreThanItMay) {
  v1::ConsistencyConfig rules = StragglerRules();
  rules.mutable_straggler()->set_share_min(1);
  MeasuredJob job(rules);
  job.SetStep(2, 4);
  EXPECT_FALSE(job.Windows(20).has_value());
}

TEST(StragglerPolicyTest, WaitsForEverybodyForGoodWhenTheLossRises) {
  MeasuredJob job(StragglerRules());
  job.SetStep(2, 0.4);
  job.Enter(*job.Window());
  job.snapshot().training_loss = 2;
  const std::optional<PlanChange> change = job.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->quorum, 0u);
  job.Enter(*change);
  EXPECT_FALSE(job.Windows(20).has_value());
  job.Restart();
  EXPECT_FALSE(job.Windows(20).has_value()) << "it has not forgotten";
}

TEST(StragglerPolicyTest, LeavesAnOperatorsModeAlone) {
  MeasuredJob job(StragglerRules());
  job.SetStep(2, 0.4);
  job.snapshot().plan.set_mode(v1::ASYNC);
  EXPECT_FALSE(job.Windows(20).has_value());
}

// In the model of training.

TEST(StragglerPolicyTrainingTest, WinsWhereOneWorkerIsSlow) {
  for (const char* scenario : {"one slow", "episodes"}) {
    const TrainingScenario training = ScenarioNamed(scenario, 1);
    const double sync = Train(training, Rules(v1::SYNC), 1).seconds_to_target;
    EXPECT_LT(Train(training, StragglerRules(), 1).seconds_to_target, 0.7 * sync) << scenario;
  }
}

TEST(StragglerPolicyTrainingTest, StaysItsHandWhereWorkersAreEqualOrHalfAreSlow) {
  for (const char* scenario : {"equal", "half slow", "speeds 1, 1, 2, 3"}) {
    EXPECT_TRUE(Train(ScenarioNamed(scenario, 1), StragglerRules(), 1).changes.empty()) << scenario;
  }
}

}  // namespace
}  // namespace rubato::coordinator
