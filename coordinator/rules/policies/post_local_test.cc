#include <gtest/gtest.h>

#include <cmath>

#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/testing/measured_job.h"
#include "coordinator/rules/policies/testing/scenarios.h"

namespace rubato::coordinator {
namespace {

// A job that exchanges after each batch first, whose rate falls to a tenth after 4 of its 10 epochs. Batches take
// 0.1 s, exchanges 0.1 s.
class PostLocalPolicyTest : public testing::Test {
 protected:
  // `cost_max`: as if exchanges cost nothing, so that only the rate counts.
  explicit PostLocalPolicyTest(double cost_max = 1000) : job_(PostLocal(cost_max), Schedule()) {
    job_.SetOverhead(0.1);
  }

  static v1::ConsistencyConfig PostLocal(double cost_max) {
    v1::ConsistencyConfig rules = Rules(v1::SYNC);
    rules.set_policy(v1::ConsistencyConfig::POST_LOCAL);
    rules.mutable_post_local()->set_cost_max(cost_max);
    return rules;
  }
  static v1::LearningRateSchedule Schedule() {
    v1::LearningRateSchedule schedule;
    schedule.set_unit(v1::LearningRateSchedule::EPOCHS);
    schedule.set_warmup(1);
    schedule.mutable_step()->set_interval(3);
    schedule.mutable_step()->set_factor(0.1);
    return schedule;
  }

  MeasuredJob job_;
};

TEST_F(PostLocalPolicyTest, LeavesOnceTheRateIsLow) {
  for (double epoch : {0.01, 2.0, 3.9}) {
    job_.snapshot().epoch = epoch;  // Of the warm-up too, which is low.
    EXPECT_FALSE(job_.Windows(5).has_value()) << epoch;
  }
  job_.snapshot().epoch = 4.1;
  job_.snapshot().plan.set_learning_rate_scale(0.75);  // An operator's.
  const std::optional<PlanChange> change = job_.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::SYNC);
  EXPECT_EQ(change->sync_every, 16u);
  EXPECT_EQ(change->quorum, 0u);
  EXPECT_EQ(change->learning_rate_scale, 0.75);
  EXPECT_EQ(
      change->reason,
      "post_local: the schedule has lowered the learning rate to 0.1 of its peak; with an exchange every 16 batches "
      "instead of 1 a batch takes 106 ms instead of 200 ms");
  job_.Enter(*change);
  EXPECT_FALSE(job_.Windows(10).has_value());
}

TEST_F(PostLocalPolicyTest, WhatMembersWaitForEachOtherByChanceGrowsWithTheRoot) {
  job_.snapshot().epoch = 4.1;
  // In each step one of the four takes 0.4 s, and 0.1 s or less most of the time: 0.4 s for all, 0.175 s in the mean.
  for (uint32_t worker = 0; worker < 4; ++worker) {
    std::vector<double>& seconds = job_.snapshot().workers[worker].work_seconds;
    seconds.assign(8, 0.1);
    seconds[worker] = seconds[4 + worker] = 0.4;
    job_.snapshot().workers[worker].mean_step_seconds = 0.4;
  }
  const std::optional<PlanChange> change = job_.Windows(3);
  ASSERT_TRUE(change.has_value());
  // 0.175 s and a quarter of 0.225 s.
  EXPECT_NE(change->reason.find("a batch takes 231 ms instead of 400 ms"), std::string::npos) << change->reason;
}

TEST_F(PostLocalPolicyTest, StaysWhereExchangesCostLittle) {
  job_.snapshot().epoch = 9;
  job_.SetOverhead(0.005);
  EXPECT_FALSE(job_.Windows(10).has_value());
}

TEST_F(PostLocalPolicyTest, GoesBackForGoodWhenTheLossRises) {
  job_.snapshot().epoch = 4.1;
  job_.Enter(*job_.Windows(3));
  job_.snapshot().training_loss = 9;
  const std::optional<PlanChange> change = job_.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->sync_every, 1u);
  EXPECT_EQ(change->reason,
            "post_local: the loss has risen since workers exchange every 16 batches, so the job goes back to every 1");
  job_.Enter(*change);
  job_.snapshot().training_loss = 1;
  EXPECT_FALSE(job_.Windows(10).has_value());
}

TEST_F(PostLocalPolicyTest, ARestartKnowsWhereItIs) {
  job_.snapshot().epoch = 4.1;
  job_.Enter(*job_.Windows(3));
  job_.Restart();
  EXPECT_FALSE(job_.Windows(5).has_value());
  job_.snapshot().training_loss = std::nan("");
  EXPECT_EQ(job_.Window()->sync_every, 1u);
}

TEST_F(PostLocalPolicyTest, LeavesAnOperatorsRulesAlone) {
  job_.snapshot().epoch = 4.1;
  job_.snapshot().plan.set_sync_every(4);
  EXPECT_FALSE(job_.Windows(5).has_value());
  job_.snapshot().plan.set_sync_every(0);
  job_.snapshot().plan.set_mode(v1::ASYNC);
  EXPECT_FALSE(job_.Windows(5).has_value());
}

class CostlyPostLocalPolicyTest : public PostLocalPolicyTest {
 protected:
  CostlyPostLocalPolicyTest() : PostLocalPolicyTest(0.03) {}
};

TEST_F(CostlyPostLocalPolicyTest, LeavesEarlierWhereExchangesCostTooMuch) {
  // 200 ms instead of 106 ms: 0.88 of what was trained is lost.
  job_.snapshot().epoch = 0.3;
  EXPECT_FALSE(job_.Window().has_value());
  job_.snapshot().epoch = 0.4;
  const std::optional<PlanChange> change = job_.Window();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->sync_every, 16u);
  EXPECT_NE(change->reason.find("post_local: 4 % of the training is done, and exchanges cost too much; with"),
            std::string::npos)
      << change->reason;
}

TEST_F(CostlyPostLocalPolicyTest, GoesBackUntilTheRateIsLowWhenTheLossStopsFalling) {
  job_.snapshot().epoch = 0.4;
  job_.Enter(*job_.Window());
  const std::optional<PlanChange> back = job_.Windows(20);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->sync_every, 1u);
  EXPECT_EQ(back->reason,
            "post_local: the loss has stopped falling since workers exchange every 16 batches, so the job goes back to "
            "every 1");
  job_.Enter(*back);
  job_.Restart();
  job_.snapshot().epoch = 3.9;
  EXPECT_FALSE(job_.Windows(5).has_value());
  job_.snapshot().epoch = 4.1;
  const std::optional<PlanChange> again = job_.Windows(3);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->sync_every, 16u);
  job_.Enter(*again);
  EXPECT_FALSE(job_.Windows(30).has_value()) << "at a low rate a loss may stay as it is";
}

TEST_F(CostlyPostLocalPolicyTest, WaitsForTheRateIfTheWorkersDataWouldLeadThemApart) {
  job_.SetLastingShare(0.1);  // With 16 batches 1.8 times what chance does.
  job_.snapshot().epoch = 3.9;
  EXPECT_FALSE(job_.Windows(5).has_value());
  job_.snapshot().epoch = 4.1;
  ASSERT_TRUE(job_.Windows(3).has_value());
}

TEST_F(CostlyPostLocalPolicyTest, GoesBackUntilTheRateIsLowWhenTheWorkersDataLeadThemApart) {
  job_.snapshot().epoch = 0.4;
  job_.Enter(*job_.Window());
  job_.SetLastingShare(0.8);
  std::optional<PlanChange> back = job_.Window();
  for (int window = 0; window < 3 && !back.has_value(); ++window) back = job_.Window();
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->sync_every, 1u);
  EXPECT_EQ(
      back->reason,
      "post_local: the workers' data lead them apart since workers exchange every 16 batches, so the job goes back "
      "to every 1");
  job_.Enter(*back);
  EXPECT_FALSE(job_.Windows(5).has_value());
}

// In the model of training.

v1::ConsistencyConfig Exchanging(int64_t every) {
  v1::ConsistencyConfig rules = Rules(v1::SYNC);
  rules.set_sync_every(every);
  return rules;
}

TEST(PostLocalPolicyTrainingTest, WinsWhereServersAreDistant) {
  const TrainingScenario scenario = DistantServers(0.1, 1);
  const TrainingOutcome outcome = Train(scenario, MeasuringRules(v1::ConsistencyConfig::POST_LOCAL), 1);
  ASSERT_EQ(outcome.changes.size(), 1u);
  EXPECT_LT(outcome.seconds_to_target, 0.5 * Train(scenario, Exchanging(1), 1).seconds_to_target);
  EXPECT_LT(outcome.seconds_to_target, 1.1 * Train(scenario, Exchanging(16), 1).seconds_to_target);
}

TEST(PostLocalPolicyTrainingTest, ReachesTheTargetWhereFewExchangesStopShortOfIt) {
  const TrainingScenario scenario = DistantOwners(0.1, 1);
  const TrainingOutcome outcome = Train(scenario, MeasuringRules(v1::ConsistencyConfig::POST_LOCAL), 1);
  EXPECT_FALSE(std::isfinite(Train(scenario, Exchanging(16), 1).seconds_to_target));
  EXPECT_LT(outcome.seconds_to_target, 1.1 * Train(scenario, Exchanging(1), 1).seconds_to_target);
}

TEST(PostLocalPolicyTrainingTest, StaysItsHandWhereServersAreNear) {
  const TrainingOutcome outcome = Train(DistantServers(0.002, 1), MeasuringRules(v1::ConsistencyConfig::POST_LOCAL), 1);
  EXPECT_TRUE(outcome.changes.empty());
  EXPECT_TRUE(std::isfinite(outcome.seconds_to_target));
}

}  // namespace
}  // namespace rubato::coordinator
