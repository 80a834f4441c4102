#include <gtest/gtest.h>

#include "coordinator/rules/policies/testing/measured_job.h"
#include "coordinator/rules/policies/testing/scenarios.h"

namespace rubato::coordinator {
namespace {

// With four workers that never wait, pushes are three updates old.
// Each worker is slow in one step of eight, and none in the same one: in SYNC everybody waits half of the time.
void MakeUneven(MeasuredJob* job) {
  for (size_t worker = 0; worker < 4; ++worker) {
    JobSnapshot::Worker& uneven = job->snapshot().workers[worker];
    uneven.work_seconds.assign(8, 0.1);
    uneven.work_seconds[2 * worker] = 0.6;
    uneven.mean_step_seconds = 0.35;
  }
}

TEST(StalenessBudgetPolicyTest, OverTheBudgetItIsTightened) {
  MeasuredJob job(StalenessBudgetRules(v1::ASYNC, 2));
  job.SetStaleness(3);
  const std::optional<PlanChange> change = job.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::SYNC) << "workers that are equal do not wait under SSP either";
  EXPECT_EQ(change->reason, "staleness_budget: pushes are 3 updates old in the mean, over the budget of 2");
  job.Enter(*change);
  job.SetStaleness(0);
  EXPECT_FALSE(job.Windows(20).has_value()) << "it knows better than to go back";
}

TEST(StalenessBudgetPolicyTest, ABoundIsEnoughWhereItMakesTheFastOnesWait) {
  MeasuredJob job(StalenessBudgetRules(v1::ASYNC, 2));
  for (uint32_t worker = 1; worker < 4; ++worker) job.SetStep(worker, 0.8);
  job.snapshot().workers[0].mean_step_seconds = 0.1;
  job.SetStaleness(3);
  const std::optional<PlanChange> change = job.Windows(3);
  ASSERT_TRUE(change.has_value());
  EXPECT_NE(change->mode, v1::ASYNC);
}

TEST(StalenessBudgetPolicyTest, InsideTheBudgetItStays) {
  MeasuredJob job(StalenessBudgetRules(v1::ASYNC, 4));
  job.SetStaleness(3);
  EXPECT_FALSE(job.Windows(20).has_value());
}

TEST(StalenessBudgetPolicyTest, WithRoomAndSomethingToGainItIsLoosened) {
  MeasuredJob job(StalenessBudgetRules(v1::SYNC, 8));
  MakeUneven(&job);
  const std::optional<PlanChange> change = job.Window();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::SSP);
  EXPECT_LE(change->staleness_bound, 16);
  EXPECT_EQ(change->learning_rate_scale, 0.25);
}

TEST(StalenessBudgetPolicyTest, WithNothingToGainItStays) {
  MeasuredJob job(StalenessBudgetRules(v1::SYNC, 8));
  EXPECT_FALSE(job.Windows(20).has_value());
}

// The replay says it would do, and the job says it does not.
TEST(StalenessBudgetPolicyTest, WhatWasOverTheBudgetIsNotTriedAgain) {
  MeasuredJob job(StalenessBudgetRules(v1::SYNC, 4));
  MakeUneven(&job);
  PlanChange change = *job.Window();
  const int64_t tried = change.staleness_bound;
  for (int changes = 0; changes < 4; ++changes) {
    job.Enter(change);
    job.SetStaleness(change.mode == v1::SYNC ? 0 : 9);
    EXPECT_FALSE(job.Window().has_value()) << "rests";
    const std::optional<PlanChange> next = job.Windows(3);
    if (!next.has_value()) return;
    change = *next;
    EXPECT_LT(change.staleness_bound, tried);
  }
}

TEST(StalenessBudgetPolicyTest, GoesToSyncForGoodWhenTheLossRises) {
  MeasuredJob job(StalenessBudgetRules(v1::ASYNC, 2));
  job.SetStaleness(3);
  EXPECT_FALSE(job.Windows(2).has_value());
  PlanChange change = *job.Window();
  job.Enter(change);
  job.snapshot().training_loss = 2;
  change = *job.Windows(3);
  EXPECT_EQ(change.mode, v1::SYNC);
  job.Enter(change);
  job.Restart();
  EXPECT_FALSE(job.Windows(20).has_value());
}

TEST(StalenessBudgetPolicyTest, AStrangeMemoryIsRefused) {
  MeasuredJob job(StalenessBudgetRules(v1::SYNC, 8));
  for (const char* memory : {"x", "1", "1 2 3", "1 0 99", "1 0 2 3"}) {
    EXPECT_EQ(job.policy().Restore(memory).code(), absl::StatusCode::kInvalidArgument) << memory;
  }
}

// In the model of training.

v1::ConsistencyConfig Budget(double budget) { return StalenessBudgetRules(v1::SYNC, budget); }

TEST(StalenessBudgetPolicyTrainingTest, WinsWhereWaitingCostsMuch) {
  for (const char* scenario : {"bimodal", "pareto 2.5"}) {
    const TrainingScenario training = ScenarioNamed(scenario, 1);
    EXPECT_LT(Train(training, Budget(16), 1).seconds_to_target,
              0.8 * Train(training, Rules(v1::SYNC), 1).seconds_to_target)
        << scenario;
  }
}

TEST(StalenessBudgetPolicyTrainingTest, StaysItsHandWhereWorkersAreEqual) {
  EXPECT_TRUE(Train(ScenarioNamed("equal", 1), Budget(16), 1).changes.empty());
}

}  // namespace
}  // namespace rubato::coordinator
