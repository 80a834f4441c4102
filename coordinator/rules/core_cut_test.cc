#include <gtest/gtest.h>

#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

class CoreCutTest : public CoreHarness {
 protected:
  void Train(int64_t every_steps, double every_seconds = 0) {
    v1::JobConfig config = SmallJob();
    config.mutable_checkpoint()->set_every_steps(every_steps);
    config.mutable_checkpoint()->set_every_seconds(every_seconds);
    Create(config);
    StartJob();
    EnterPlan(1);
  }
  // The first step that is not in it is 11, which is due after 8.
  void BeginCut() {
    Train(8);
    EnterPlan(8);
    Do(core_->OnTick(now_));
  }
  v1::Cut PresentCut() { return core_->Status(now_).plan().cut(); }
};

TEST_F(CoreCutTest, IsBegunAfterAsManySteps) {
  Train(8);
  EnterPlan(7);
  Do(core_->OnTick(now_));
  EXPECT_EQ(PresentCut().id(), 0u);
  EnterPlan(8);
  Do(core_->OnTick(now_));
  EXPECT_EQ(PresentCut().id(), 1u);
  // Servers have begun step 10.
  EXPECT_EQ(PresentCut().name(), "step11");
  EXPECT_EQ(core_->Status(now_).checkpoint().in_progress(), "step11");
  // A change of nothing but that is no change of plans to a reader of the record.
  EXPECT_TRUE(Contains(log_, "plan 1"));
  Pass(absl::Seconds(6));
  for (const Line& line : Lines(Line::kPlan)) EXPECT_EQ(line.plan().generation(), 1u);
}

TEST_F(CoreCutTest, IsBegunAfterAsManySeconds) {
  Train(0, 20);
  Pass(absl::Seconds(19));
  EXPECT_EQ(PresentCut().id(), 0u);
  Pass(absl::Seconds(2));
  EXPECT_EQ(PresentCut().id(), 1u);
}

TEST_F(CoreCutTest, IsNotBegunBeforeTheLastOneIsComplete) {
  BeginCut();
  EnterPlan(100);
  Pass(absl::Seconds(1));
  EXPECT_EQ(PresentCut().id(), 1u);
  WriteCut();
  started_ = 110;
  EnterPlan(110);
  Do(core_->OnTick(now_));
  EXPECT_EQ(PresentCut().id(), 2u);
  EXPECT_EQ(PresentCut().name(), "step111");
}

TEST_F(CoreCutTest, ExistsWhenAllPartsAreWritten) {
  BeginCut();
  const uint64_t generation = core_->Status(now_).plan().generation();
  ReportCut(ServerTask(0), Written(1));
  ReportCut(ServerTask(1), Written(1));
  ReportCut(WorkerTask(0), Written(1, true), 11, generation);
  // Written, but of the step before.
  ReportCut(WorkerTask(1), Written(1, false), 10, generation);
  EXPECT_TRUE(cuts_.empty());
  EXPECT_EQ(core_->Status(now_).checkpoint().waiting_for(), "worker 1");
  EXPECT_EQ(core_->Status(now_).checkpoint().last(), "");
  ReportCut(WorkerTask(1), Written(1, true), 11, generation);
  ASSERT_EQ(cuts_.size(), 1u);
  EXPECT_EQ(cuts_[0].plan().first_step(), 11);
  EXPECT_EQ(cuts_[0].servers_size(), 2);
  // The journal says so first.
  EXPECT_TRUE(journal_.back().has_cut());
  EXPECT_EQ(core_->Status(now_).checkpoint().last(), "step11");
  ASSERT_EQ(Lines(Line::kCheckpoint).size(), 1u);
  EXPECT_EQ(Lines(Line::kCheckpoint)[0].checkpoint().bytes(), 4000);
  EXPECT_EQ(core_->Status(now_).counts().checkpoints_total(), 1);
}

TEST_F(CoreCutTest, OldOnesGo) {
  Train(8);
  for (int64_t step : {8, 28, 48}) {
    started_ = step + 2;
    EnterPlan(step);
    Do(core_->OnTick(now_));
    WriteCut();
  }
  ASSERT_EQ(cuts_.size(), 3u);
  const v1::KeepCheckpoints keep = Last(ServerTask(0)).keep_checkpoints();
  ASSERT_EQ(keep.names_size(), 3);
  EXPECT_EQ(keep.names(0), "step0");
  EXPECT_EQ(keep.names(1), "step31");
  EXPECT_EQ(keep.names(2), "step51");
}

TEST_F(CoreCutTest, GoesOnWithoutALostMember) {
  BeginCut();
  const uint64_t generation = core_->Status(now_).plan().generation();
  ReportCut(ServerTask(0), Written(1));
  ReportCut(ServerTask(1), Written(1));
  ReportCut(WorkerTask(0), Written(1, true), 11, generation);
  EXPECT_TRUE(cuts_.empty());
  Leave(WorkerTask(1), "out of memory");
  ASSERT_EQ(cuts_.size(), 1u);
}

TEST_F(CoreCutTest, AnOperatorIsToldWhenItIsComplete) {
  Train(0);
  Do(core_->RequestCheckpoint(7, now_));
  EXPECT_EQ(PresentCut().id(), 1u);
  // This one is of the cut after it.
  Do(core_->RequestCheckpoint(8, now_));
  EXPECT_TRUE(checkpoints_.empty());
  WriteCut();
  ASSERT_TRUE(checkpoints_.contains(7));
  EXPECT_EQ(checkpoints_.at(7)->cut().name(), "step11");
  EXPECT_EQ(checkpoints_.at(7)->step(), 11);
  EXPECT_FALSE(checkpoints_.contains(8));
  started_ = 20;
  Do(core_->OnTick(now_));
  WriteCut();
  EXPECT_EQ(checkpoints_.at(8)->step(), 21);
}

TEST_F(CoreCutTest, OutsideOfTrainingThereIsNone) {
  Create(SmallJob());
  Do(core_->RequestCheckpoint(7, now_));
  EXPECT_EQ(checkpoints_.at(7).status().code(), absl::StatusCode::kFailedPrecondition);
}

// Worker 0 has pushed all of shard 1 and half of 3 when it enters the plan, worker 1 nothing of shard 2. What they do
// afterwards is not in the cut.
TEST_F(CoreCutTest, KnowsWhichExamplesAreInIt) {
  Train(8);
  EXPECT_EQ(AskShard(WorkerTask(0), 1).shard(), 1u);
  EXPECT_EQ(AskShard(WorkerTask(1), 1).shard(), 2u);
  EXPECT_EQ(AskShard(WorkerTask(0), 2).shard(), 3u);
  EnterPlan(8);
  Do(core_->OnTick(now_));
  const uint64_t generation = core_->Status(now_).plan().generation();
  v1::CutProgress first = Written(1, true);
  for (auto [shard, next] : {std::pair<uint64_t, int64_t>(1, 10), {3, 25}}) {
    first.add_shards()->set_shard(shard);
    first.mutable_shards(first.shards_size() - 1)->set_next(next);
  }
  ReportCut(WorkerTask(0), first, 11, generation);
  EXPECT_EQ(AskShard(WorkerTask(0), 3, {1, 3}).shard(), 4u);
  EXPECT_EQ(AskShard(WorkerTask(0), 4, {4}).shard(), 5u);
  v1::CutProgress second = Written(1, true);
  second.add_shards()->set_shard(2);
  second.mutable_shards(0)->set_next(10);
  ReportCut(WorkerTask(1), second, 11, generation);
  ReportCut(ServerTask(0), Written(1));
  ReportCut(ServerTask(1), Written(1));
  ASSERT_EQ(cuts_.size(), 1u);
  const v1::ShardState& shards = cuts_[0].shards();
  ASSERT_EQ(shards.finished_size(), 1);
  EXPECT_EQ(shards.finished(0).first(), 1u);
  EXPECT_EQ(shards.finished(0).last(), 1u);
  ASSERT_EQ(shards.begun_size(), 1);
  EXPECT_EQ(shards.begun(0).shard(), 3u);
  EXPECT_EQ(shards.begun(0).next(), 25);
  EXPECT_EQ(cuts_[0].examples(), 15);
  EXPECT_DOUBLE_EQ(cuts_[0].epoch(), 0.15);
}

TEST_F(CoreCutTest, APositionThatCannotBeIsWaitedFor) {
  Train(8);
  EXPECT_EQ(AskShard(WorkerTask(0), 1).shard(), 1u);
  EnterPlan(8);
  Do(core_->OnTick(now_));
  v1::CutProgress wrong = Written(1, true);
  wrong.add_shards()->set_shard(1);
  wrong.mutable_shards(0)->set_next(11);
  ReportCut(WorkerTask(0), wrong, 11, core_->Status(now_).plan().generation());
  EXPECT_TRUE(Contains(core_->Status(now_).checkpoint().waiting_for(),
                       "worker 0: cut.shards: worker 0 is at example 11 of shard 1; allowed: 0 to 10"))
      << core_->Status(now_).checkpoint().waiting_for();
}

}  // namespace
}  // namespace rubato::coordinator
