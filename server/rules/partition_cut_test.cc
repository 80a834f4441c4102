// Cuts: what a partition captures of a plan that carries one, and which pushes wait for that.
#include <gtest/gtest.h>

#include "server/rules/partition.h"
#include "server/rules/testing/builders.h"
#include "server/rules/testing/partition_harness.h"

namespace rubato::server {
namespace {

using Reply = v1::ExchangeReply;
using Captures = std::vector<std::pair<uint32_t, int64_t>>;

constexpr uint64_t kCut = 7;

class PartitionCutTest : public PartitionHarness {
 protected:
  // Plan 1 of workers 0 and 1, both at work on step 0; then plan 2, with a cut, from step 1 on.
  void EnterCutAtWork(v1::Mode mode, int64_t staleness_bound = 0) {
    partition_.Commit(MakePlan(1, mode, 0, {0, 1}, staleness_bound), now_);
    Pull(0, 1, 0);
    Pull(1, 1, 0);
    plan_ = WithCut(MakePlan(2, mode, 1, {0, 1}, staleness_bound), kCut);
    partition_.Commit(plan_, now_);
    EXPECT_TRUE(cut_.empty());
    EXPECT_FALSE(partition_.cut_complete());
  }
  // Worker 0 does step 0 of plan 1 and pushes step 1 of plan 2, which worker 1 has not come to. Returns that push.
  uint64_t PushAhead() {
    ExpectAnswer(Push(0, 1, 0), Reply::MOVED, Reply::PUSH_APPLIED);
    ExpectAnswer(Pull(0, 2, 1), Reply::OK);
    return Push(0, 2, 1);
  }

  v1::Plan plan_;
};

TEST_F(PartitionCutTest, AsyncHoldsAFastWorkersPushUntilTheSlowOnesOldPushIsApplied) {
  EnterCutAtWork(v1::ASYNC);
  const uint64_t ahead = PushAhead();
  EXPECT_FALSE(Answered(ahead));
  EXPECT_EQ(applied_.size(), 2u);
  ExpectAnswer(Push(1, 1, 0, {0}), Reply::MOVED, Reply::PUSH_APPLIED);
  // Chunk 0 is captured; the push is to chunk 1, too, and nothing of it is taken yet.
  EXPECT_EQ(cut_[kCut], (Captures{{0, 2}}));
  EXPECT_FALSE(Answered(ahead));
  EXPECT_EQ(applied_.size(), 3u);
  ExpectAnswer(Push(1, 1, 0, {1}), Reply::MOVED, Reply::PUSH_APPLIED);
  EXPECT_EQ(cut_[kCut], (Captures{{0, 2}, {1, 2}}));
  EXPECT_TRUE(partition_.cut_complete());
  ExpectAnswer(ahead, Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_EQ(replies_[ahead].applied_to, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(applied_.size(), 6u);
}

TEST_F(PartitionCutTest, SspHoldsItAsWellAndSaysForWhom) {
  EnterCutAtWork(v1::SSP, 3);
  const uint64_t ahead = PushAhead();
  EXPECT_FALSE(Answered(ahead));
  const std::vector<HeldStart> held = partition_.HeldStarts();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].worker, 0u);
  EXPECT_EQ(DescribeWait(held[0].waiting_for, held[0].waits_for_coordinator), "worker 1");
  Push(1, 1, 0);
  EXPECT_EQ(cut_[kCut], (Captures{{0, 2}, {1, 2}}));
  ExpectAnswer(ahead, Reply::OK, Reply::PUSH_APPLIED);
}

TEST_F(PartitionCutTest, APushToChunksThatAreCapturedIsNotHeldForOthers) {
  EnterCutAtWork(v1::ASYNC);
  Push(0, 1, 0);
  Push(1, 1, 0, {0});
  Pull(0, 2, 1);
  ExpectAnswer(Push(0, 2, 1, {0}), Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_FALSE(Answered(Push(0, 2, 1, {1})));
}

TEST_F(PartitionCutTest, SyncCapturesWhatTheLastStepBeforeMade) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}), now_);
  Pull(0, 1, 0);
  Pull(1, 1, 0);
  Push(0, 1, 0);
  partition_.Announce(2);
  partition_.Commit(WithCut(MakePlan(2, v1::SYNC, 1, {0, 1}), kCut), now_);
  EXPECT_TRUE(cut_.empty());
  ExpectAnswer(Push(1, 1, 0), Reply::MOVED, Reply::PUSH_APPLIED);
  EXPECT_EQ(cut_[kCut], (Captures{{0, 1}, {1, 1}}));
  Pull(0, 2, 1);
  Pull(1, 2, 1);
  Push(0, 2, 1);
  ExpectAnswer(Push(1, 2, 1), Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_EQ(cut_[kCut].size(), 2u);  // Once.
}

TEST_F(PartitionCutTest, ASwitchFromSyncToAsyncMayCarryACut) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}), now_);
  Pull(0, 1, 0);
  Pull(1, 1, 0);
  partition_.Commit(WithCut(MakePlan(2, v1::ASYNC, 1, {0, 1}), kCut), now_);
  Push(0, 1, 0);
  EXPECT_TRUE(cut_.empty());
  Push(1, 1, 0);
  EXPECT_EQ(cut_[kCut], (Captures{{0, 1}, {1, 1}}));
}

TEST_F(PartitionCutTest, CapturesAtOnceWhereNobodyIsAtWork) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0}), now_);
  Pull(0, 1, 0);
  partition_.Announce(2);
  const uint64_t moved = Push(0, 1, 0);
  partition_.Commit(WithCut(MakePlan(2, v1::ASYNC, 1, {0}), kCut), now_);
  EXPECT_EQ(cut_[kCut], (Captures{{0, 1}, {1, 1}}));
  ExpectAnswer(moved, Reply::MOVED, Reply::PUSH_APPLIED);
  Pull(0, 2, 1);
  ExpectAnswer(Push(0, 2, 1), Reply::OK, Reply::PUSH_APPLIED);
}

TEST_F(PartitionCutTest, TheFirstPlanMayCarryACut) {
  partition_.Restore(1, 40);
  partition_.Commit(WithCut(MakePlan(5, v1::SYNC, 9, {0}), kCut), now_);
  EXPECT_EQ(cut_[kCut], (Captures{{0, 0}, {1, 40}}));
}

TEST_F(PartitionCutTest, AWorkerThatAbandonsItsStepIsNotWaitedFor) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0}), now_);
  Pull(0, 1, 0, {0});
  partition_.Announce(2);
  Pull(0, 1, 0, {1});  // Held, and moved: the step is begun on chunk 0 alone and never pushed.
  partition_.Commit(WithCut(MakePlan(2, v1::ASYNC, 1, {0}), kCut), now_);
  EXPECT_EQ(cut_[kCut], (Captures{{1, 0}}));
  ExpectAnswer(Pull(0, 2, 1), Reply::OK);
  EXPECT_EQ(cut_[kCut], (Captures{{1, 0}, {0, 0}}));
}

TEST_F(PartitionCutTest, ALostMemberIsNotWaitedFor) {
  EnterCutAtWork(v1::ASYNC);
  const uint64_t ahead = PushAhead();
  Push(1, 1, 0, {0});
  partition_.Commit(Without(plan_, 1), now_);
  // Its push is in one chunk and not in the other: it was lost in that step.
  EXPECT_EQ(cut_[kCut], (Captures{{0, 2}, {1, 1}}));
  ExpectAnswer(ahead, Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_EQ(replies_[ahead].applied_to, (std::vector<int64_t>{2, 1}));
}

TEST_F(PartitionCutTest, ALostMembersHeldPushIsDropped) {
  EnterCutAtWork(v1::ASYNC);
  const uint64_t ahead = PushAhead();
  partition_.Commit(Without(plan_, 0), now_);
  ExpectAnswer(ahead, Reply::NOT_A_MEMBER);
  Push(1, 1, 0);
  EXPECT_EQ(cut_[kCut], (Captures{{0, 2}, {1, 2}}));
  EXPECT_EQ(applied_.size(), 4u);
}

TEST_F(PartitionCutTest, AHeldPushThatTimesOutIsPendingAndAppliedOnceWhenItIsRepeated) {
  EnterCutAtWork(v1::ASYNC);
  const uint64_t ahead = PushAhead();
  Pass(kTimeout);
  ExpectAnswer(ahead, Reply::WAITING, Reply::PUSH_PENDING);
  ASSERT_EQ(replies_[ahead].waiting_for.size(), 1u);
  EXPECT_EQ(replies_[ahead].waiting_for[0].index(), 1u);
  EXPECT_TRUE(Says(ahead, "worker 1"));
  EXPECT_TRUE(Says(ahead, "checkpoint step1"));
  EXPECT_EQ(applied_.size(), 2u);
  const uint64_t again = Push(0, 2, 1);
  EXPECT_FALSE(Answered(again));
  Push(1, 1, 0);
  ExpectAnswer(again, Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_EQ(applied_.size(), 6u);
  ExpectAnswer(Push(0, 2, 1), Reply::OK, Reply::PUSH_DUPLICATE);
  EXPECT_EQ(applied_.size(), 6u);
}

TEST_F(PartitionCutTest, ForgetDropsAHeldPushUntaken) {
  EnterCutAtWork(v1::ASYNC);
  const uint64_t lost = PushAhead();
  partition_.Forget(lost);
  Push(1, 1, 0);
  EXPECT_EQ(cut_[kCut], (Captures{{0, 2}, {1, 2}}));
  EXPECT_FALSE(Answered(lost));
  EXPECT_EQ(applied_.size(), 4u);
  ExpectAnswer(Push(0, 2, 1), Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_EQ(applied_.size(), 6u);
}

TEST_F(PartitionCutTest, ALaterRequestTakesThePlaceOfAHeldPush) {
  EnterCutAtWork(v1::ASYNC);
  const uint64_t first = PushAhead();
  const uint64_t second = Push(0, 2, 1);
  ExpectAnswer(first, Reply::WAITING, Reply::PUSH_PENDING);
  EXPECT_FALSE(Answered(second));
  Push(1, 1, 0);
  ExpectAnswer(second, Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_EQ(applied_.size(), 6u);
}

TEST_F(PartitionCutTest, AQuorumsLatePushIsAwaitedAndDropped) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}, 0, 1), now_);
  Pull(0, 1, 0);
  Pull(1, 1, 0);
  partition_.Announce(2);
  const uint64_t fast = Push(0, 1, 0);
  partition_.Commit(WithCut(MakePlan(2, v1::SYNC, 1, {0, 1}, 0, 1), kCut), now_);
  ExpectAnswer(fast, Reply::MOVED, Reply::PUSH_APPLIED);
  const uint64_t next = Pull(0, 2, 1);
  EXPECT_FALSE(Answered(next));
  EXPECT_TRUE(cut_.empty());
  ExpectAnswer(Push(1, 1, 0), Reply::MOVED, Reply::PUSH_DROPPED);
  EXPECT_EQ(cut_[kCut], (Captures{{0, 1}, {1, 1}}));
  ExpectAnswer(next, Reply::OK);
}

TEST_F(PartitionCutTest, AnotherPlansCutTakesThePlaceOfOneThatIsNotComplete) {
  EnterCutAtWork(v1::ASYNC);
  const uint64_t ahead = PushAhead();
  partition_.Commit(WithCut(MakePlan(3, v1::ASYNC, 2, {0, 1}), kCut + 1), now_);
  // Step 1 is before this cut.
  ExpectAnswer(ahead, Reply::MOVED, Reply::PUSH_APPLIED);
  EXPECT_TRUE(cut_.empty());
  ExpectAnswer(Pull(1, 3, 2), Reply::OK);  // Gives up its step 0.
  EXPECT_EQ(cut_.count(kCut), 0u);
  EXPECT_EQ(cut_[kCut + 1], (Captures{{0, 2}, {1, 2}}));
}

TEST_F(PartitionCutTest, APlanWithoutACutGivesUpTheOneBeforeAndTakesWhatItHeld) {
  EnterCutAtWork(v1::ASYNC);
  const uint64_t ahead = PushAhead();
  partition_.Commit(MakePlan(3, v1::ASYNC, 2, {0, 1}), now_);
  ExpectAnswer(ahead, Reply::MOVED, Reply::PUSH_APPLIED);
  EXPECT_TRUE(partition_.cut_complete());
  Pull(1, 3, 2);
  EXPECT_TRUE(cut_.empty());
}

TEST_F(PartitionCutTest, AChunkGoesOnFromTheVersionThatWasRestored) {
  partition_.Restore(0, 40);
  partition_.Commit(MakePlan(5, v1::SYNC, 9, {0}), now_);
  Pull(0, 5, 9);
  const uint64_t push = Push(0, 5, 9);
  ExpectAnswer(push, Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_EQ(replies_[push].applied_to, (std::vector<int64_t>{40, 0}));
  EXPECT_EQ(partition_.Find(0)->version(), 41);
  EXPECT_EQ(log_.back().update().applied_version(), 1);
}

}  // namespace
}  // namespace rubato::server
