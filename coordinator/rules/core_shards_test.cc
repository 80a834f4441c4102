// What becomes of the shards of workers that are gone.
#include <gtest/gtest.h>

#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

v1::ShardPosition At(uint64_t shard, int64_t next) {
  v1::ShardPosition position;
  position.set_shard(shard);
  position.set_next(next);
  return position;
}

class CoreShardsTest : public CoreHarness {
 protected:
  // Worker 0 holds shards 1 and 3, worker 1 shard 2; all have ten examples.
  void Lease(double every_seconds = 0) {
    v1::JobConfig config = SmallJob();
    config.mutable_consistency()->set_mode(v1::ASYNC);
    config.mutable_checkpoint()->set_every_seconds(every_seconds);
    Create(config);
    StartJob();
    EnterPlan(1);
    EXPECT_EQ(AskShard(WorkerTask(0), 1).shard(), 1u);
    EXPECT_EQ(AskShard(WorkerTask(1), 1).shard(), 2u);
    EXPECT_EQ(AskShard(WorkerTask(0), 2).shard(), 3u);
  }
  void LoseWorker0() { Leave(WorkerTask(0), "out of memory"); }
  // The server holds the plan, and says how far worker 0 came; step -1: it has nothing of it.
  void Acknowledge(uint32_t server, int64_t step = -1, const v1::ShardPosition& trained = {}) {
    const v1::Plan plan = LastPlan(server);
    v1::TaskMessage message;
    *message.mutable_task() = ServerTask(server);
    message.mutable_plan_ack()->set_generation(plan.generation());
    message.mutable_plan_ack()->set_amendment(plan.amendment());
    if (step >= 0) {
      v1::LostWorker* lost = message.mutable_plan_ack()->add_lost();
      *lost->mutable_task() = WorkerTask(0);
      lost->set_step(step);
      *lost->mutable_trained() = trained;
    }
    Deliver(message);
  }
  v1::Plan LastPlan(uint32_t server) {
    v1::Plan plan;
    for (const v1::Directive& directive : sent_[TaskName(ServerTask(server))]) {
      if (directive.has_commit()) plan = directive.commit().plan();
    }
    return plan;
  }
  // The next shard that worker 1 gets.
  v1::ShardGrant Next() { return AskShard(WorkerTask(1), ++requests_); }
  void ExpectGrant(uint64_t shard, int64_t begin, int64_t end) {
    const v1::ShardGrant grant = Next();
    EXPECT_EQ(grant.shard(), shard);
    EXPECT_EQ(grant.begin(), begin);
    EXPECT_EQ(grant.end(), end);
  }

  uint64_t requests_ = 1;
};

TEST_F(CoreShardsTest, WhatALostWorkerHasTrainedIsNotGivenOutAgain) {
  Lease();
  mute_ = {0, 1};
  LoseWorker0();
  Acknowledge(0, 4, At(3, 23));
  ExpectGrant(4, 30, 40);  // The other server may have more.
  Acknowledge(1, 5, At(3, 26));
  EXPECT_EQ(core_->Status(now_).examples_done(), 16);
  ExpectGrant(3, 26, 30);
  ExpectGrant(5, 40, 50);
}

TEST_F(CoreShardsTest, AWorkerThatPushedNothingGivesBackWhatItHeld) {
  Lease();
  mute_ = {0, 1};
  LoseWorker0();
  Acknowledge(0);
  ExpectGrant(4, 30, 40);
  Acknowledge(1);
  ExpectGrant(1, 0, 10);
  ExpectGrant(3, 20, 30);
}

TEST_F(CoreShardsTest, AShardThatWasAllTrainedIsFinishedThoughItWasNotReported) {
  Lease();
  mute_ = {0, 1};
  LoseWorker0();
  Acknowledge(0, 4, At(1, 10));
  Acknowledge(1, 4, At(1, 10));
  ExpectGrant(3, 20, 30);
  ExpectGrant(4, 30, 40);
}

TEST_F(CoreShardsTest, AGracefulLeaverKeepsWhatItHasTrained) {
  Lease();
  mute_ = {0, 1};
  Drain(WorkerTask(0));
  Acknowledge(0, 4, At(1, 4));
  Acknowledge(1, 4, At(1, 4));
  ExpectGrant(1, 4, 10);
  ExpectGrant(3, 20, 30);
}

TEST_F(CoreShardsTest, APositionThatCannotBeIsToldAndTheShardTrainedAgain) {
  Lease();
  mute_ = {0, 1};
  LoseWorker0();
  Acknowledge(0, 4, At(1, 11));
  Acknowledge(1);
  EXPECT_TRUE(Contains(log_, "lost.trained: worker 0 is at example 11 of shard 1; allowed: 0 to 10")) << log_;
  ExpectGrant(1, 0, 10);
}

TEST_F(CoreShardsTest, ARestartedCoordinatorKnowsWhatWasReturned) {
  Lease();
  mute_ = {0, 1};
  LoseWorker0();
  Acknowledge(0, 5, At(3, 26));
  Acknowledge(1, 5, At(3, 26));
  ASSERT_TRUE(Restart().ok());
  ExpectGrant(3, 26, 30);
  ExpectGrant(4, 30, 40);
}

TEST_F(CoreShardsTest, ACoordinatorThatIsRestartedBeforeAsksTheServersAgain) {
  Lease();
  mute_ = {0, 1};
  LoseWorker0();
  Acknowledge(0, 5, At(3, 26));
  ASSERT_TRUE(Restart().ok());
  ExpectGrant(4, 30, 40);
  Acknowledge(1, 4, At(3, 23));
  ExpectGrant(5, 40, 50);
  Acknowledge(0, 5, At(3, 26));
  ExpectGrant(3, 26, 30);
}

// Seed 931,690 of the simulation: what is left waits for a cut meanwhile, through two plans.
TEST_F(CoreShardsTest, ARestartedCoordinatorKnowsWhatServersHaveSaidAndForgotten) {
  Lease();
  mute_ = {0, 1};
  LoseWorker0();
  Acknowledge(0, 5, At(3, 26));
  ASSERT_TRUE(Restart().ok());
  Acknowledge(1, 4, At(3, 23));
  Acknowledge(0);
  ExpectGrant(3, 26, 30);
}

// Worker 0 has entered the cut's plan with half of shard 1, went on to 8, and is lost; worker 1 is slow.
TEST_F(CoreShardsTest, NothingIsGivenBackWhileACutIsToldOf) {
  Lease(20);
  Pass(absl::Seconds(20));
  const v1::Plan plan = core_->Status(now_).plan();
  ASSERT_EQ(plan.cut().id(), 1u);
  v1::CutProgress first = Written(1, true);
  *first.add_shards() = At(1, 5);
  *first.add_shards() = At(3, 20);
  ReportCut(WorkerTask(0), first, plan.first_step(), plan.generation());
  mute_ = {0, 1};
  LoseWorker0();
  Acknowledge(0, plan.first_step(), At(1, 8));
  Acknowledge(1, plan.first_step(), At(1, 8));
  ExpectGrant(4, 30, 40);
  for (uint32_t i = 0; i < 2; ++i) ReportCut(ServerTask(i), Written(1));
  v1::CutProgress second = Written(1, true);
  *second.add_shards() = At(2, 13);
  *second.add_shards() = At(4, 30);
  ReportCut(WorkerTask(1), second, plan.first_step(), plan.generation());
  ASSERT_EQ(cuts_.size(), 1u);
  ASSERT_EQ(cuts_[0].shards().begun_size(), 2);
  EXPECT_EQ(cuts_[0].shards().begun(0).shard(), 1u);
  EXPECT_EQ(cuts_[0].shards().begun(0).next(), 5);
  EXPECT_EQ(cuts_[0].examples(), 5 + 3);
  ExpectGrant(1, 8, 10);
}

TEST_F(CoreShardsTest, AMemberWhosePositionCannotBeHoldsNothingBack) {
  Lease(20);
  Pass(absl::Seconds(20));
  const v1::Plan plan = core_->Status(now_).plan();
  v1::CutProgress wrong = Written(1, true);
  *wrong.add_shards() = At(2, 21);
  ReportCut(WorkerTask(1), wrong, plan.first_step(), plan.generation());
  mute_ = {0, 1};
  LoseWorker0();
  Acknowledge(0, plan.first_step() - 1, At(1, 8));
  Acknowledge(1, plan.first_step() - 1, At(1, 8));
  ExpectGrant(1, 8, 10);
}

// It has pushed the first step after the cut and nobody has heard where it was then.
TEST_F(CoreShardsTest, ACutThatCannotKnowAPositionIsBegunAgain) {
  Lease(20);
  Pass(absl::Seconds(20));
  const v1::Plan plan = core_->Status(now_).plan();
  v1::CutProgress second = Written(1, true);
  *second.add_shards() = At(2, 13);
  ReportCut(WorkerTask(1), second, plan.first_step(), plan.generation());
  mute_ = {0, 1};
  LoseWorker0();
  EXPECT_EQ(core_->Status(now_).checkpoint().in_progress(), plan.cut().name());
  Acknowledge(0, plan.first_step(), At(1, 8));
  EXPECT_TRUE(Contains(core_->Status(now_).checkpoint().waiting_for(), "the servers' word on how far worker 0 came"));
  mute_.clear();
  Acknowledge(1, plan.first_step() - 1, At(1, 5));
  EXPECT_TRUE(Contains(log_, "is given up, and another one begun: worker 0 was lost")) << log_;
  EXPECT_TRUE(cuts_.empty());
  EXPECT_EQ(core_->Status(now_).plan().cut().id(), 2u);
  ExpectGrant(1, 8, 10);
}

}  // namespace
}  // namespace rubato::coordinator
