#include "coordinator/rules/shard_dispatcher.h"

#include <gtest/gtest.h>

#include <optional>

namespace rubato::coordinator {
namespace {

v1::TaskId Worker(uint32_t index, uint64_t incarnation) {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}

class ShardDispatcherTest : public testing::Test {
 protected:
  // 25 examples: shards of 10, 10 and 5.
  ShardDispatcherTest() : dispatcher_({.train_examples = 25, .shard_examples = 10, .epochs = 2}) {}

  v1::ShardGrant Ask(const v1::TaskId& worker, uint64_t id, const std::vector<uint64_t>& finished = {}) {
    v1::ShardRequest request;
    request.set_request_id(id);
    for (uint64_t shard : finished) request.add_finished_shards(shard);
    return dispatcher_.Request(worker, request).grant.value_or(v1::ShardGrant());
  }

  // Nobody knows of anything that it has trained.
  void Lose(const v1::TaskId& worker) {
    dispatcher_.Leave(worker);
    EXPECT_TRUE(dispatcher_.Return(worker, std::nullopt).ok());
  }

  ShardDispatcher dispatcher_;
  const v1::TaskId a_ = Worker(0, 100);
  const v1::TaskId b_ = Worker(1, 200);
};

TEST_F(ShardDispatcherTest, HandsOutEpochsInOrderWithoutWaitingForTheLast) {
  for (uint64_t i = 1; i <= 6; ++i) {
    v1::ShardGrant grant = Ask(a_, i);
    EXPECT_EQ(grant.result(), v1::ShardGrant::GRANTED);
    EXPECT_EQ(grant.shard(), i);
    EXPECT_EQ(grant.epoch(), i <= 3 ? 0 : 1);
    EXPECT_EQ(grant.begin(), static_cast<int64_t>((i - 1) % 3) * 10);
    EXPECT_EQ(grant.end(), std::min<int64_t>(grant.begin() + 10, 25));
  }
  EXPECT_EQ(Ask(a_, 7).result(), v1::ShardGrant::NONE_NOW);
}

TEST_F(ShardDispatcherTest, ARepeatedRequestGetsTheSameAnswer) {
  v1::ShardGrant first = Ask(a_, 1);
  EXPECT_EQ(Ask(a_, 1).shard(), first.shard());
  EXPECT_EQ(Ask(a_, 2).shard(), first.shard() + 1);
  v1::ShardRequest old;
  old.set_request_id(1);
  EXPECT_FALSE(dispatcher_.Request(a_, old).grant.has_value());
}

TEST_F(ShardDispatcherTest, ALostWorkersShardsAreGivenOutFirst) {
  Ask(a_, 1);
  Ask(b_, 1);
  Ask(a_, 2, {1});
  Lose(a_);
  EXPECT_EQ(dispatcher_.examples_done(), 10);
  EXPECT_EQ(Ask(b_, 2).shard(), 3u);
  EXPECT_EQ(Ask(b_, 3).shard(), 4u);
}

TEST_F(ShardDispatcherTest, ALostWorkersShardsAreNobodysBeforeItIsKnownHowFarItCame) {
  for (uint64_t i = 1; i <= 3; ++i) Ask(a_, i);
  dispatcher_.Leave(a_);
  ASSERT_EQ(dispatcher_.gone().size(), 1u);
  EXPECT_EQ(Ask(b_, 1).shard(), 4u);
  v1::ShardPosition trained;
  trained.set_shard(2);
  trained.set_next(14);
  EXPECT_TRUE(dispatcher_.Return(a_, trained).ok());
  EXPECT_TRUE(dispatcher_.gone().empty());
  EXPECT_EQ(dispatcher_.examples_done(), 14);
  const v1::ShardGrant rest = Ask(b_, 2);
  EXPECT_EQ(rest.shard(), 2u);
  EXPECT_EQ(rest.begin(), 14);
  EXPECT_EQ(rest.end(), 20);
  EXPECT_EQ(Ask(b_, 3).shard(), 3u);
  Ask(b_, 4, {2});
  EXPECT_EQ(dispatcher_.examples_done(), 20);
}

TEST_F(ShardDispatcherTest, WhoLeavesWithNothingIsNotWaitedFor) {
  Ask(a_, 1);
  dispatcher_.Leave(b_);
  EXPECT_TRUE(dispatcher_.gone().empty());
}

TEST_F(ShardDispatcherTest, AReportOfAShardThatIsNotHeldCountsForNothing) {
  Ask(a_, 1);
  Lose(a_);
  EXPECT_EQ(Ask(b_, 1).shard(), 1u);
  Ask(a_, 2, {1, 99});
  EXPECT_EQ(dispatcher_.examples_done(), 0);
  Ask(b_, 2, {1});
  Ask(b_, 3, {1});
  EXPECT_EQ(dispatcher_.examples_done(), 10);
}

TEST_F(ShardDispatcherTest, IsDoneWhenEveryShardIsFinished) {
  for (uint64_t i = 1; i <= 6; ++i) Ask(i % 2 ? a_ : b_, i);
  EXPECT_EQ(Ask(a_, 7, {1, 3, 5}).result(), v1::ShardGrant::NONE_NOW);
  EXPECT_FALSE(dispatcher_.Done());
  EXPECT_EQ(Ask(b_, 7, {2, 4, 6}).result(), v1::ShardGrant::DONE);
  EXPECT_EQ(Ask(a_, 8).result(), v1::ShardGrant::DONE);
  EXPECT_EQ(dispatcher_.examples_done(), 50);
}

TEST_F(ShardDispatcherTest, ANewIncarnationStartsItsRequestsAfresh) {
  Ask(a_, 1);
  Ask(a_, 2);
  Lose(a_);
  EXPECT_EQ(Ask(Worker(0, 101), 1).shard(), 1u);
}

TEST_F(ShardDispatcherTest, GoesOnAfterARestart) {
  v1::ShardGrant first = Ask(a_, 1);
  v1::ShardGrant second = Ask(b_, 1);
  v1::ShardGrant third = Ask(a_, 2, {first.shard()});
  ShardDispatcher restarted({.train_examples = 25, .shard_examples = 10, .epochs = 2});
  restarted.RestoreLease(a_, first);
  restarted.RestoreLease(b_, second);
  restarted.RestoreFinished(first.shard());
  restarted.RestoreLease(a_, third);
  EXPECT_EQ(restarted.examples_done(), 10);
  v1::ShardRequest repeat;
  repeat.set_request_id(2);
  EXPECT_EQ(restarted.Request(a_, repeat).grant->shard(), third.shard());
  repeat.add_finished_shards(second.shard());
  repeat.set_request_id(2);
  EXPECT_EQ(restarted.Request(b_, repeat).grant->shard(), 4u);
  EXPECT_EQ(restarted.examples_done(), 20);
}

}  // namespace
}  // namespace rubato::coordinator
