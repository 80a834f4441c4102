// How a job ends with training.max_steps.
#include "coordinator/rules/coordinator_core.h"
#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

using MaxStepsTest = CoreHarness;

TEST_F(MaxStepsTest, EveryWorkerDoesMaxStepsBeforeTheJobEnds) {
  v1::JobConfig config = SmallJob();
  config.mutable_training()->set_max_steps(30);
  Create(config);
  StartJob();
  AskShard(WorkerTask(0), 1);
  Beat(WorkerTask(0), 29, 1);  // In its last step, counted from 0.
  Pass(absl::Milliseconds(100));
  Leave(WorkerTask(0));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  // The other one has data for its own.
  Beat(WorkerTask(1), 15, 1);
  EXPECT_EQ(AskShard(WorkerTask(1), 1).result(), v1::ShardGrant::GRANTED);
  Beat(WorkerTask(1), 29, 1);
  Leave(WorkerTask(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FINISHING);
}

TEST_F(MaxStepsTest, AWorkerThatLeavesBeforeItsLastStepDoesNotEndTheJob) {
  v1::JobConfig config = SmallJob();
  config.mutable_training()->set_max_steps(30);
  Create(config);
  StartJob();
  Beat(WorkerTask(0), 10, 1);
  Beat(WorkerTask(1), 10, 1);
  Leave(WorkerTask(0));
  Leave(WorkerTask(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
}

// 30 steps of two workers, of four batches of five examples each.
TEST_F(MaxStepsTest, AStepOfLocalSgdCountsAllItsBatches) {
  v1::JobConfig config = SmallJob();
  config.mutable_training()->set_epochs(0);
  config.mutable_training()->set_max_steps(30);
  config.mutable_consistency()->set_sync_every(4);
  Create(config);
  StartJob();
  EXPECT_DOUBLE_EQ(core_->Status(now_).epochs_total(), 30.0 * 2 * 4 * 5 / kTrainExamples);
  EXPECT_EQ(metrics_[0].start().batch_size(), 5);
  EXPECT_EQ(metrics_[0].start().sync_every(), 4);
}

}  // namespace
}  // namespace rubato::coordinator
