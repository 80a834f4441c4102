#include <gtest/gtest.h>

#include "coordinator/rules/policies/testing/measured_job.h"
#include "coordinator/rules/policies/testing/scenarios.h"

namespace rubato::coordinator {
namespace {

v1::ConsistencyConfig DsspRules(int64_t bound = 3) {
  return MeasuringRules(v1::ConsistencyConfig::DSSP, v1::SSP, bound);
}

v1::ConsistencyConfig Ssp(int64_t bound) {
  v1::ConsistencyConfig rules = Rules(v1::SSP);
  rules.set_staleness_bound(bound);
  return rules;
}

// Now and then a step of one after another takes twenty times as long.
void SetHiccups(MeasuredJob& job) {
  for (size_t worker = 0; worker < 4; ++worker) {
    std::vector<double>& work = job.snapshot().workers[worker].work_seconds;
    work.assign(40, 0.1);
    work[10 * worker] = 2;
    job.snapshot().workers[worker].mean_step_seconds = 0.25;
  }
}

TEST(DsspPolicyTest, RaisesTheBoundToTakeUpWhatHappensToOneAfterAnother) {
  MeasuredJob job(DsspRules());
  SetHiccups(job);
  const std::optional<PlanChange> change = job.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::SSP);
  EXPECT_GT(change->staleness_bound, 6);
  EXPECT_LE(change->staleness_bound, 15);
  EXPECT_EQ(change->learning_rate_scale, 1) << "as it was";
  EXPECT_EQ(change->reason.substr(0, 25), "dssp: with a bound of 10 ");
}

TEST(DsspPolicyTest, NoBoundHelpsAgainstAMemberThatIsSlowForGood) {
  MeasuredJob job(DsspRules());
  job.SetStep(1, 0.4);
  EXPECT_FALSE(job.Windows(20).has_value());
}

TEST(DsspPolicyTest, LowersABoundThatIsOfNoUse) {
  MeasuredJob job(DsspRules(15));
  const std::optional<PlanChange> change = job.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->staleness_bound, 3);
}

TEST(DsspPolicyTest, KeepsToItsLimits) {
  v1::ConsistencyConfig rules = DsspRules(2);
  rules.mutable_dssp()->set_bound_min(2);
  rules.mutable_dssp()->set_bound_max(5);
  MeasuredJob job(rules);
  SetHiccups(job);
  const std::optional<PlanChange> change = job.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_LE(change->staleness_bound, 5);
}

TEST(DsspPolicyTest, GoesBackForGoodWhenTheLossRises) {
  MeasuredJob job(DsspRules());
  SetHiccups(job);
  job.Enter(*job.Windows(3));
  job.snapshot().training_loss = 2;
  const std::optional<PlanChange> change = job.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->staleness_bound, 3);
  job.Enter(*change);
  EXPECT_FALSE(job.Windows(20).has_value());
  job.Restart();
  EXPECT_FALSE(job.Windows(20).has_value()) << "it has not forgotten";
}

TEST(DsspPolicyTest, LeavesAnOperatorsModeAlone) {
  MeasuredJob job(DsspRules());
  SetHiccups(job);
  job.snapshot().plan.set_mode(v1::SYNC);
  EXPECT_FALSE(job.Windows(20).has_value());
}

// In the model of training.

TEST(DsspPolicyTrainingTest, WinsWhereStepsHaveAHeavyTail) {
  for (const char* scenario : {"pareto 1.5", "bimodal"}) {
    const TrainingScenario training = WithRateOf(ScenarioNamed(scenario, 1), v1::SSP, 0);
    const double ratio =
        Train(training, DsspRules(), 1).seconds_to_target / Train(training, Ssp(3), 1).seconds_to_target;
    EXPECT_LT(ratio, 0.95) << scenario;
  }
}

TEST(DsspPolicyTrainingTest, StaysItsHandWhereNoBoundHelps) {
  for (const char* scenario : {"equal", "one slow", "half slow"}) {
    EXPECT_TRUE(Train(WithRateOf(ScenarioNamed(scenario, 1), v1::SSP, 0), DsspRules(), 1).changes.empty()) << scenario;
  }
}

}  // namespace
}  // namespace rubato::coordinator
