#include "server/rules/partition.h"

#include <gtest/gtest.h>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

using Kind = PartitionRequest::Kind;
using Reply = v1::ExchangeReply;

constexpr absl::Duration kTimeout = absl::Seconds(2);

class PartitionTest : public testing::Test, public PartitionSink {
 protected:
  bool IsFinite(uint32_t, const Contribution&) override { return !non_finite_; }
  void Apply(const ChunkRules::Update& update) override { applied_.push_back(update.chunk); }
  void Answer(const PartitionReply& reply) override {
    EXPECT_TRUE(replies_.emplace(reply.token, reply).second) << "answered twice: " << reply.token;
  }
  void Capture(uint64_t token, uint32_t chunk) override {
    captured_[token].push_back({chunk, partition_.Find(chunk)->version()});
  }
  void Log(const v1::UpdateLogRecord& record) override { log_.push_back(record); }

  uint64_t Send(Kind kind, uint32_t worker, uint64_t generation, int64_t step, std::vector<uint32_t> chunks,
                uint64_t incarnation = 1) {
    PartitionRequest request;
    request.token = ++last_token_;
    request.kind = kind;
    request.task = Worker(worker, incarnation);
    request.generation = generation;
    request.step = step;
    request.chunks = std::move(chunks);
    for (size_t i = 0; kind == Kind::kPushPull && i < request.chunks.size(); ++i) {
      request.contributions.push_back(PushOf(worker, generation, step));
      request.contributions.back().task = request.task;
    }
    partition_.OnRequest(std::move(request), now_);
    return last_token_;
  }
  uint64_t Pull(uint32_t worker, uint64_t generation, int64_t step, std::vector<uint32_t> chunks = {0, 1}) {
    return Send(Kind::kPull, worker, generation, step, std::move(chunks));
  }
  uint64_t Push(uint32_t worker, uint64_t generation, int64_t step, std::vector<uint32_t> chunks = {0, 1}) {
    return Send(Kind::kPushPull, worker, generation, step, std::move(chunks));
  }
  uint64_t Snapshot(int64_t step, std::vector<uint32_t> chunks = {0, 1}) {
    return Send(Kind::kSnapshot, 9, 0, step, std::move(chunks));
  }
  void Pass(absl::Duration duration) {
    now_ += duration;
    partition_.OnTick(now_);
  }
  bool Answered(uint64_t token) const { return replies_.contains(token); }
  void ExpectAnswer(uint64_t token, Reply::Outcome outcome, Reply::PushOutcome push = Reply::PUSH_NONE) {
    ASSERT_TRUE(Answered(token)) << token;
    EXPECT_EQ(replies_[token].outcome, outcome) << replies_[token].message;
    EXPECT_EQ(replies_[token].push, push);
  }
  bool Says(uint64_t token, const std::string& part) { return replies_[token].message.find(part) != std::string::npos; }

  absl::Time now_ = absl::UnixEpoch();
  Partition partition_{{1, 0}, kTimeout, this};
  std::map<uint64_t, PartitionReply> replies_;
  std::map<uint64_t, std::vector<std::pair<uint32_t, int64_t>>> captured_;
  std::vector<uint32_t> applied_;
  std::vector<v1::UpdateLogRecord> log_;
  bool non_finite_ = false;
  uint64_t last_token_ = 0;
};

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
  EXPECT_EQ(replies_[again].applied_to, (std::vector<int64_t>{-1, -1}));
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
