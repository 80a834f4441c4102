#include "server/rules/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "server/rules/testing/builders.h"
#include "server/rules/testing/partition_harness.h"

namespace rubato::server {
namespace {

using Kind = PartitionRequest::Kind;
using Reply = v1::ExchangeReply;

class PartitionTest : public PartitionHarness {};

TEST_F(PartitionTest, RefusesBadRequestsAndSaysWhy) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0}), now_);
  uint64_t token = Pull(0, 1, 0, {});
  ExpectAnswer(token, Reply::REFUSED);
  EXPECT_TRUE(Says(token, "chunks: none given"));
  token = Pull(0, 1, 0, {0, 7});
  ExpectAnswer(token, Reply::REFUSED);
  EXPECT_TRUE(Says(token, "chunks[1]: chunk 7 is not in this partition"));
  token = Pull(0, 1, 0, {1, 1});
  ExpectAnswer(token, Reply::REFUSED);
  EXPECT_TRUE(Says(token, "named twice"));
  token = Push(0, 1, 0);
  ExpectAnswer(token, Reply::REFUSED);
  EXPECT_TRUE(Says(token, "push of step 0 (generation 1) to chunk 0"));
  EXPECT_TRUE(applied_.empty());
}

TEST_F(PartitionTest, RefusesAllOfAPushWhenOneChunkIsWrong) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0}), now_);
  Pull(0, 1, 0, {0});
  ExpectAnswer(Push(0, 1, 0, {0, 1}), Reply::REFUSED);
  EXPECT_TRUE(applied_.empty());
}

TEST_F(PartitionTest, TellsWhoIsNotAMember) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0}), now_);
  ExpectAnswer(Pull(1, 1, 0), Reply::NOT_A_MEMBER);
  ExpectAnswer(Send(Kind::kPull, 0, 1, 0, {0}, 2), Reply::NOT_A_MEMBER);  // Another incarnation.
  EXPECT_FALSE(Answered(Pull(1, 2, 5)));                                  // Of a plan that is in flight.
  partition_.Commit(MakePlan(2, v1::ASYNC, 5, {0, 1}), now_);
  ExpectAnswer(last_token_, Reply::OK);
}

TEST_F(PartitionTest, AnswersAPushWithTheWeightsOfTheNextStep) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}), now_);
  ExpectAnswer(Pull(0, 1, 0), Reply::OK);
  ExpectAnswer(Pull(1, 1, 0), Reply::OK);
  uint64_t first = Push(0, 1, 0);
  EXPECT_FALSE(Answered(first));
  uint64_t second = Push(1, 1, 0);
  ExpectAnswer(first, Reply::OK, Reply::PUSH_APPLIED);
  ExpectAnswer(second, Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_EQ(replies_[first].applied_to, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(replies_[first].chunks, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(applied_.size(), 2u);
  EXPECT_EQ(partition_.highest_begun(), 1);
}

// More than what is known of a worker has room for in one row.
class PartitionOfManyChunksTest : public PartitionHarness {
 protected:
  PartitionOfManyChunksTest() : PartitionHarness(Chunks()) {}

  static std::vector<uint32_t> Chunks() {
    std::vector<uint32_t> chunks;
    for (uint32_t chunk = 0; chunk < 40; ++chunk) chunks.push_back(3 * chunk);
    return chunks;
  }
};

TEST_F(PartitionOfManyChunksTest, KeepsChunksAndWorkersApart) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0, 5}), now_);
  for (uint32_t worker : {0u, 5u}) ExpectAnswer(Pull(worker, 1, 0, Chunks()), Reply::OK);
  ExpectAnswer(Push(0, 1, 0, Chunks()), Reply::OK, Reply::PUSH_APPLIED);
  // Chunks on both sides of where a row ends.
  const std::vector<uint32_t> some = {0, 45, 48, 117};
  ExpectAnswer(Push(5, 1, 0, some), Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_EQ(replies_[last_token_].applied_to, (std::vector<int64_t>{1, 1, 1, 1}));
  for (uint32_t chunk : Chunks()) {
    const ChunkRules& rules = *partition_.Find(chunk);
    const bool both = std::find(some.begin(), some.end(), chunk) != some.end();
    EXPECT_EQ(rules.version(), both ? 2 : 1) << chunk;
    EXPECT_EQ(rules.AppliedTo(Worker(5), 0), both ? 1 : -1) << chunk;
    EXPECT_EQ(rules.reached().lowest_clock, both ? 1 : 0) << chunk;
  }
  v1::ServerProgress progress;
  partition_.Describe(&progress);
  ASSERT_EQ(progress.clocks_size(), 2);
  EXPECT_EQ(progress.clocks(0).clock(), 1);
  EXPECT_EQ(progress.clocks(1).clock(), 0);
}

TEST_F(PartitionTest, LogsEveryContributionAndPlan) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}), now_);
  for (uint32_t worker : {0u, 1u}) Pull(worker, 1, 0, {0});
  for (uint32_t worker : {1u, 0u}) Push(worker, 1, 0, {0});
  ASSERT_EQ(log_.size(), 3u);
  EXPECT_EQ(log_[0].plan().generation(), 1u);
  EXPECT_EQ(log_[1].update().worker(), 0u);
  EXPECT_EQ(log_[2].update().worker(), 1u);
  EXPECT_EQ(log_[2].update().applied_version(), 1);
}

TEST_F(PartitionTest, AcknowledgesARepeatedPushWithoutApplyingIt) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0}), now_);
  Pull(0, 1, 0);
  ExpectAnswer(Push(0, 1, 0), Reply::OK, Reply::PUSH_APPLIED);
  uint64_t again = Push(0, 1, 0);
  ExpectAnswer(again, Reply::OK, Reply::PUSH_DUPLICATE);
  EXPECT_EQ(replies_[again].applied_to, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(applied_.size(), 2u);
}

TEST_F(PartitionTest, CountsAGradientThatIsNotFiniteAsEmpty) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0}), now_);
  Pull(0, 1, 0);
  non_finite_ = true;
  ExpectAnswer(Push(0, 1, 0), Reply::OK, Reply::PUSH_NON_FINITE);
  EXPECT_TRUE(applied_.empty());
  EXPECT_TRUE(log_.back().update().ineffective());
}

TEST_F(PartitionTest, SaysWhomItWaitsForWhenItTimesOut) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}), now_);
  Pull(0, 1, 0);
  uint64_t token = Push(0, 1, 0);
  Pass(kTimeout - absl::Milliseconds(1));
  EXPECT_FALSE(Answered(token));
  Pass(absl::Milliseconds(1));
  ExpectAnswer(token, Reply::WAITING, Reply::PUSH_PENDING);
  ASSERT_EQ(replies_[token].waiting_for.size(), 1u);
  EXPECT_EQ(replies_[token].waiting_for[0].index(), 1u);
  EXPECT_TRUE(Says(token, "worker 1"));
}

TEST_F(PartitionTest, AppliesAPushWhoseStartMustWait) {
  partition_.Commit(MakePlan(1, v1::SSP, 0, {0, 1}, 1), now_);
  Pull(0, 1, 0);
  Push(0, 1, 0);
  uint64_t token = Push(0, 1, 1);
  EXPECT_FALSE(Answered(token));
  EXPECT_EQ(applied_.size(), 4u);
  Pass(kTimeout);
  ExpectAnswer(token, Reply::WAITING, Reply::PUSH_APPLIED);
  uint64_t pull = Pull(0, 1, 2);
  Pull(1, 1, 0);
  Push(1, 1, 0);
  ExpectAnswer(pull, Reply::OK);
}

TEST_F(PartitionTest, ALaterRequestTakesThePlaceOfAnEarlierOne) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}), now_);
  Pull(0, 1, 0);
  uint64_t first = Push(0, 1, 0);
  uint64_t second = Push(0, 1, 0);
  // The push of the first is still in collection: to call it applied would be a lie.
  ExpectAnswer(first, Reply::WAITING, Reply::PUSH_PENDING);
  EXPECT_FALSE(Answered(second));
  Pull(1, 1, 0);
  Push(1, 1, 0);
  ExpectAnswer(second, Reply::OK, Reply::PUSH_APPLIED);
}

TEST_F(PartitionTest, ForgetsRequestsOfABrokenConnectionAndKeepsTheirPushes) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}), now_);
  Pull(0, 1, 0);
  uint64_t lost = Push(0, 1, 0);
  partition_.Forget(lost);
  Pull(1, 1, 0);
  ExpectAnswer(Push(1, 1, 0), Reply::OK, Reply::PUSH_APPLIED);
  EXPECT_FALSE(Answered(lost));
  ExpectAnswer(Push(0, 1, 0), Reply::OK, Reply::PUSH_DUPLICATE);
}

TEST_F(PartitionTest, HoldsStartsFromAnnouncementToCommit) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0, 1}), now_);
  Pull(0, 1, 0);
  EXPECT_EQ(partition_.Announce(2), 0);
  uint64_t held = Push(0, 1, 0);
  EXPECT_FALSE(Answered(held));
  EXPECT_EQ(applied_.size(), 2u);
  partition_.Commit(MakePlan(2, v1::SSP, 1, {0, 1}, 3), now_);
  ExpectAnswer(held, Reply::MOVED, Reply::PUSH_APPLIED);
  EXPECT_EQ(replies_[held].plan.generation(), 2u);
  EXPECT_EQ(replies_[held].next_step, 1);
  ExpectAnswer(Pull(0, 2, 1), Reply::OK);
}

TEST_F(PartitionTest, AWaitForTheCoordinatorIsNamedSo) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0}), now_);
  partition_.Announce(2);
  uint64_t token = Pull(0, 1, 0);
  Pass(kTimeout);
  ExpectAnswer(token, Reply::WAITING);
  EXPECT_TRUE(Says(token, "the coordinator"));
}

TEST_F(PartitionTest, GoesOnWhenTheAnnouncedChangeIsAborted) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0}), now_);
  partition_.Announce(2);
  uint64_t held = Pull(0, 1, 0);
  partition_.Abort(3, now_);  // Another change.
  EXPECT_FALSE(Answered(held));
  partition_.Abort(2, now_);
  ExpectAnswer(held, Reply::OK);
}

TEST_F(PartitionTest, RepeatedAndOldDirectivesChangeNothing) {
  partition_.Commit(MakePlan(2, v1::ASYNC, 0, {0}), now_);
  EXPECT_EQ(partition_.Announce(2), -1);
  ExpectAnswer(Pull(0, 2, 0), Reply::OK);  // Not held.
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}), now_);
  partition_.Commit(MakePlan(2, v1::SYNC, 0, {0, 1}), now_);
  EXPECT_EQ(partition_.plan().mode(), v1::ASYNC);
  EXPECT_EQ(log_.size(), 1u);
}

TEST_F(PartitionTest, LeavingSyncEverybodyFinishesTheSameStep) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}), now_);
  Pull(0, 1, 0);
  partition_.Announce(2);
  uint64_t held = Pull(1, 1, 0);
  partition_.Commit(MakePlan(2, v1::ASYNC, 1, {0, 1}), now_);
  ExpectAnswer(held, Reply::OK);
  uint64_t first = Push(0, 1, 0);
  EXPECT_FALSE(Answered(first));
  uint64_t second = Push(1, 1, 0);
  ExpectAnswer(first, Reply::MOVED, Reply::PUSH_APPLIED);
  ExpectAnswer(second, Reply::MOVED, Reply::PUSH_APPLIED);
  ExpectAnswer(Pull(0, 2, 1), Reply::OK);
}

TEST_F(PartitionTest, EnteringSyncWaitsForStepsAtWork) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0, 1}), now_);
  Pull(0, 1, 0);
  Pull(1, 1, 0);
  partition_.Commit(MakePlan(2, v1::SYNC, 1, {0, 1}), now_);
  Push(0, 1, 0);
  uint64_t entering = Pull(0, 2, 1);
  EXPECT_FALSE(Answered(entering));
  Push(1, 1, 0);
  ExpectAnswer(entering, Reply::OK);
}

TEST_F(PartitionTest, AnAmendmentCompletesTheStepAndRefusesTheLost) {
  const v1::Plan plan = MakePlan(1, v1::SYNC, 0, {0, 1});
  partition_.Commit(plan, now_);
  Pull(0, 1, 0);
  Pull(1, 1, 0, {0});
  uint64_t lost_pull = Send(Kind::kPull, 1, 2, 5, {1});
  uint64_t waiting = Push(0, 1, 0);
  partition_.Commit(Without(plan, 1), now_);
  ExpectAnswer(waiting, Reply::OK, Reply::PUSH_APPLIED);
  ExpectAnswer(Push(1, 1, 0, {0}), Reply::NOT_A_MEMBER);
  EXPECT_FALSE(Answered(lost_pull));  // It may be a member of the plan that it speaks of.
}

TEST_F(PartitionTest, AnAmendmentOpensTheGateThatTheLostKeptShut) {
  const v1::Plan plan = MakePlan(1, v1::SSP, 0, {0, 1}, 1);
  partition_.Commit(plan, now_);
  Pull(0, 1, 0);
  Push(0, 1, 0);
  uint64_t held = Push(0, 1, 1);
  EXPECT_FALSE(Answered(held));
  partition_.Commit(Without(plan, 1), now_);
  ExpectAnswer(held, Reply::OK, Reply::PUSH_APPLIED);
}

TEST_F(PartitionTest, AQuorumDropsTheLateAndMovesLaggards) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}, 0, 1), now_);
  Pull(0, 1, 0);
  Pull(1, 1, 0);
  Push(0, 1, 0);
  Push(0, 1, 1);
  uint64_t late = Push(1, 1, 0);
  ExpectAnswer(late, Reply::MOVED, Reply::PUSH_DROPPED);
  EXPECT_EQ(replies_[late].next_step, 2);
  EXPECT_EQ(applied_.size(), 4u);
  ExpectAnswer(Pull(1, 1, 2), Reply::OK);
}

TEST_F(PartitionTest, TellsOfAPushThatItWasDroppedWhereItIsForOneChunk) {
  Partition limited({0, 1}, kTimeout, this, /*staleness_limit=*/1);
  limited.Commit(MakePlan(1, v1::ASYNC, 0, {0, 1}), now_);
  const auto send = [&](Kind kind, uint32_t worker, std::vector<uint32_t> chunks) {
    PartitionRequest request = {.token = ++last_token_, .kind = kind, .task = Worker(worker), .generation = 1};
    for (size_t i = 0; kind == Kind::kPushPull && i < chunks.size(); ++i) {
      request.contributions.push_back(PushOf(worker, 1, 0));
    }
    request.chunks = std::move(chunks);
    limited.OnRequest(std::move(request), now_);
    return last_token_;
  };
  send(Kind::kPull, 0, {0, 1});
  send(Kind::kPull, 1, {0, 1});
  ExpectAnswer(send(Kind::kPushPull, 1, {0}), Reply::OK, Reply::PUSH_APPLIED);
  ExpectAnswer(send(Kind::kPushPull, 0, {0, 1}), Reply::OK, Reply::PUSH_DROPPED);
  EXPECT_EQ(applied_, (std::vector<uint32_t>{0, 1}));
  EXPECT_TRUE(log_[log_.size() - 2].update().ineffective());
  EXPECT_FALSE(log_.back().update().ineffective());
}

TEST_F(PartitionTest, GivesASnapshotOfExactlyTheStepThatWasAskedFor) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0}), now_);
  uint64_t token = Snapshot(1);
  Pull(0, 1, 0, {0});
  Pull(0, 1, 0, {1});
  Push(0, 1, 0, {0});
  Push(0, 1, 1, {0});  // Chunk 0 goes on before chunk 1 has come so far.
  EXPECT_FALSE(Answered(token));
  Push(0, 1, 0, {1});
  ExpectAnswer(token, Reply::OK);
  EXPECT_EQ(captured_[token], (std::vector<std::pair<uint32_t, int64_t>>{{0, 1}, {1, 1}}));
}

TEST_F(PartitionTest, IsTooLateForASnapshotOfAStepThatHasPassed) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0}), now_);
  Pull(0, 1, 0);
  Push(0, 1, 0);
  Push(0, 1, 1);
  uint64_t token = Snapshot(1);
  ExpectAnswer(token, Reply::LATE);
  EXPECT_EQ(replies_[token].next_step, 3);
  ExpectAnswer(Snapshot(-1), Reply::OK);
}

TEST_F(PartitionTest, AnswersALateSnapshotOnceThoughSeveralChunksMoveOn) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0}), now_);
  Pull(0, 1, 0, {0});
  Pull(0, 1, 0, {1});
  Push(0, 1, 0, {0});
  uint64_t token = Snapshot(0);  // Chunk 0 has passed it.
  ExpectAnswer(token, Reply::LATE);
  uint64_t next = Snapshot(2);
  Push(0, 1, 1, {0});
  Push(0, 1, 2, {0});
  Push(0, 1, 0, {1});
  Push(0, 1, 1, {1});
  ExpectAnswer(next, Reply::OK);
}

TEST_F(PartitionTest, ASnapshotOfTheFirstSyncStepWaitsForPushesOfThePlanBefore) {
  partition_.Commit(MakePlan(1, v1::ASYNC, 0, {0}), now_);
  Pull(0, 1, 0);
  partition_.Commit(MakePlan(2, v1::SYNC, 1, {0}), now_);
  uint64_t token = Snapshot(1);
  EXPECT_FALSE(Answered(token));
  Push(0, 1, 0);
  ExpectAnswer(token, Reply::OK);
  EXPECT_EQ(captured_[token], (std::vector<std::pair<uint32_t, int64_t>>{{0, 1}, {1, 1}}));
}

TEST_F(PartitionTest, ASnapshotThatIsNeverReachedEndsWithATimeout) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0}), now_);
  uint64_t token = Snapshot(100);
  Pass(kTimeout);
  ExpectAnswer(token, Reply::WAITING);
  EXPECT_TRUE(Says(token, "SYNC step 100"));
}

TEST_F(PartitionTest, DescribesClocksAndHeldRequests) {
  partition_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1}), now_);
  Pull(0, 1, 0);
  Push(0, 1, 0);
  v1::ServerProgress progress;
  partition_.Describe(&progress);
  ASSERT_EQ(progress.clocks_size(), 2);
  EXPECT_EQ(progress.clocks(0).clock(), 0);
  const std::vector<HeldStart> held = partition_.HeldStarts();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].step, 1);
  EXPECT_EQ(DescribeWait(held[0].waiting_for, held[0].waits_for_coordinator), "worker 1");
}

}  // namespace
}  // namespace rubato::server
