#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/testing/measured_job.h"
#include "coordinator/rules/policies/testing/scenarios.h"

namespace rubato::coordinator {
namespace {

// A job that exchanges after 16 batches first, whose rate falls to a quarter after 4 of its 10 epochs. Batches take
// 0.1 s, exchanges 0.1 s. Workers have data of their own.
class AdaCommPolicyTest : public testing::Test {
 protected:
  AdaCommPolicyTest() : job_(AdaCommRules(), Schedule()) {
    SetSteps(16);
    job_.SetLastingShare(0.9);
  }

  static v1::LearningRateSchedule Schedule() {
    v1::LearningRateSchedule schedule;
    schedule.set_unit(v1::LearningRateSchedule::EPOCHS);
    schedule.mutable_step()->set_interval(4);
    schedule.mutable_step()->set_factor(0.25);
    return schedule;
  }
  void SetSteps(int batches, double overhead = 0.1) {
    for (uint32_t worker = 0; worker < 4; ++worker) job_.SetStep(worker, 0.1 * batches);
    job_.SetOverhead(overhead);
  }
  void Enter(const PlanChange& change) {
    job_.Enter(change);
    SetSteps(static_cast<int>(change.sync_every));
  }

  MeasuredJob job_;
};

TEST_F(AdaCommPolicyTest, ExchangesMoreOftenAtALowerLoss) {
  job_.snapshot().training_loss = 0.3;
  job_.snapshot().plan.set_learning_rate_scale(0.75);  // An operator's.
  const std::optional<PlanChange> change = job_.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::SYNC);
  EXPECT_EQ(change->sync_every, 9u) << "16 times the root of 0.3 is 8.76";
  EXPECT_EQ(change->learning_rate_scale, 0.75);
  EXPECT_EQ(
      change->reason,
      "adacomm: the training loss is 0.3, from 1 at first, with 1 of the schedule's peak rate, so sync_every becomes "
      "9, from 16");
}

TEST_F(AdaCommPolicyTest, HalvesWhereTheLossHasNotFallenEnough) {
  uint32_t expected = 16;
  while (expected > 1) {
    const std::optional<PlanChange> change = job_.Windows(3);
    ASSERT_TRUE(change.has_value());
    EXPECT_EQ(change->sync_every, expected /= 2);
    Enter(*change);
  }
  EXPECT_FALSE(job_.Windows(10).has_value());
}

TEST_F(AdaCommPolicyTest, LeavesItAsItIsWhereChanceAloneLeadsWorkersApart) {
  // With 16 batches the lasting part of the moves' variance is 0.67 of the rest.
  job_.SetLastingShare(0.4);
  for (int window = 0; window < 30; ++window) {
    job_.snapshot().training_loss = 1 - 0.02 * window;
    EXPECT_FALSE(job_.Window().has_value()) << window;
  }
  EXPECT_FALSE(job_.Windows(10).has_value()) << "the loss may rest a while";
  std::optional<PlanChange> change;
  for (int window = 0; window < 12 && !change.has_value(); ++window) change = job_.Window();
  ASSERT_TRUE(change.has_value()) << "but not for long";
  EXPECT_EQ(change->sync_every, 11u) << "16 times the root of 0.42 is 10.4";
}

TEST_F(AdaCommPolicyTest, ExchangesLessOftenAgainAtALowerRate) {
  job_.snapshot().training_loss = 0.05;
  Enter(*job_.Windows(3));
  job_.snapshot().epoch = 4.1;
  const std::optional<PlanChange> change = job_.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->sync_every, 8u) << "16 times the root of 0.05 / 0.25 is 7.16";
}

TEST_F(AdaCommPolicyTest, TakesTheFewestBatchesWhereExchangesCostNextToNothing) {
  SetSteps(16, 0.005);
  const std::optional<PlanChange> change = job_.Window();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->sync_every, 1u);
  EXPECT_EQ(change->reason,
            "adacomm: exchanges cost next to nothing: a batch takes 105 ms with sync_every 1 and 100 ms with 16");
  job_.Enter(*change);
  SetSteps(1, 0.005);
  job_.snapshot().epoch = 4.1;
  EXPECT_FALSE(job_.Windows(10).has_value());
}

TEST_F(AdaCommPolicyTest, ALossThatIsNoneDecidesNothing) {
  job_.snapshot().training_loss = std::nan("");
  EXPECT_FALSE(job_.Windows(10).has_value());
  job_.snapshot().training_loss = 0.3;
  EXPECT_EQ(job_.Window()->sync_every, 9u);
}

TEST_F(AdaCommPolicyTest, ARestartKnowsTheFirstLoss) {
  job_.snapshot().training_loss = 0.3;
  Enter(*job_.Windows(3));
  job_.Restart();
  job_.snapshot().training_loss = 0.1;
  EXPECT_EQ(job_.Windows(3)->sync_every, 6u) << "16 times the root of 0.1 is 5.06";
}

TEST_F(AdaCommPolicyTest, AnothersMemoryIsRefused) {
  for (const char* memory : {"x", "1 16", "1 17 1", "1 0 1", "-1 4 1", "1 4 0", "nan 4 1"}) {
    EXPECT_EQ(job_.policy().Restore(memory).code(), absl::StatusCode::kInvalidArgument) << memory;
  }
  EXPECT_TRUE(job_.policy().Restore("- 4 0.5").ok());
}

TEST_F(AdaCommPolicyTest, LeavesAnOperatorsRulesAlone) {
  job_.snapshot().plan.set_sync_every(4);
  EXPECT_FALSE(job_.Windows(5).has_value());
  job_.snapshot().plan.set_sync_every(0);
  job_.snapshot().plan.set_mode(v1::ASYNC);
  EXPECT_FALSE(job_.Windows(5).has_value());
}

// In the model of training.

TEST(AdaCommPolicyTrainingTest, WinsWhereWorkersHaveDataOfTheirOwnAndServersAreDistant) {
  const TrainingScenario scenario = DistantOwners(0.1, 1);
  const TrainingOutcome outcome = Train(scenario, AdaCommRules(), 1);
  v1::ConsistencyConfig every16 = Rules(v1::SYNC);
  every16.set_sync_every(16);
  EXPECT_FALSE(std::isfinite(Train(scenario, every16, 1).seconds_to_target)) << "it stops short of the target";
  EXPECT_LT(outcome.seconds_to_target, 0.8 * Train(scenario, Rules(v1::SYNC), 1).seconds_to_target);
}

TEST(AdaCommPolicyTrainingTest, StaysItsHandWhereDataAreAlike) {
  const TrainingScenario scenario = DistantServers(0.1, 1);
  const TrainingOutcome outcome = Train(scenario, AdaCommRules(), 1);
  EXPECT_TRUE(outcome.changes.empty());
  EXPECT_TRUE(std::isfinite(outcome.seconds_to_target));
}

TEST(AdaCommPolicyTrainingTest, IsSyncWhereServersAreNear) {
  const TrainingScenario scenario = DistantOwners(0.002, 1);
  const TrainingOutcome outcome = Train(scenario, AdaCommRules(), 1);
  ASSERT_EQ(outcome.changes.size(), 1u);
  EXPECT_EQ(outcome.changes.front().sync_every, 1u);
  EXPECT_LT(outcome.seconds_to_target, 1.1 * Train(scenario, Rules(v1::SYNC), 1).seconds_to_target);
}

}  // namespace
}  // namespace rubato::coordinator
