#include "server/rules/chunk_rules.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

using Result = ChunkRules::StartResult;
using Pushed = ChunkRules::PushResult;

// One chunk and its window of plans, driven as a partition would.
class ChunkRulesTest : public testing::Test {
 protected:
  void Enter(const v1::Plan& plan) {
    ASSERT_EQ(window_.Commit(plan), PlanWindow::Change::kEntered);
    rules_.EnterPlan(window_);
    EXPECT_FALSE(rules_.Amend(window_).has_value());
  }
  std::optional<ChunkRules::Update> Lose(uint32_t worker) {
    EXPECT_EQ(window_.Commit(Without(window_.current(), worker)), PlanWindow::Change::kAmended);
    return rules_.Amend(window_);
  }
  // Asks, and begins if it may.
  absl::StatusOr<ChunkRules::Start> Ask(uint32_t worker, uint64_t generation, int64_t step) {
    rules_.NoteStartRequest(window_, Worker(worker), generation, step);
    auto start = rules_.AskStart(window_, Worker(worker), generation, step);
    if (start.ok() && start->result == Result::kOpen) rules_.Begin(Worker(worker), step);
    return start;
  }
  void ExpectStart(Result result, uint32_t worker, uint64_t generation, int64_t step) {
    auto start = Ask(worker, generation, step);
    ASSERT_TRUE(start.ok()) << start.status();
    EXPECT_EQ(start->result, result) << "worker " << worker << " step " << step;
  }
  ChunkRules::Push Take(uint32_t worker, uint64_t generation, int64_t step, uint64_t examples = 8) {
    Contribution push = PushOf(worker, generation, step, examples);
    EXPECT_TRUE(rules_.CheckPush(window_, push).ok()) << rules_.CheckPush(window_, push);
    return rules_.TakePush(window_, push);
  }
  absl::Status Check(uint32_t worker, uint64_t generation, int64_t step) {
    return rules_.CheckPush(window_, PushOf(worker, generation, step));
  }

  PlanWindow window_;
  ChunkRules rules_{0};
};

TEST_F(ChunkRulesTest, SyncMakesOneUpdateOfEverybodysContribution) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  ExpectStart(Result::kOpen, 1, 1, 0);
  EXPECT_EQ(Take(1, 1, 0).result, Pushed::kPending);
  EXPECT_TRUE(rules_.Pending(Worker(1)));
  ExpectStart(Result::kWait, 1, 1, 1);
  ChunkRules::Push push = Take(0, 1, 0);
  ASSERT_TRUE(push.update.has_value());
  ASSERT_EQ(push.update->contributions.size(), 2u);
  EXPECT_EQ(push.update->contributions[0].header->task.index(), 0u);
  EXPECT_EQ(push.update->from_version, 0);
  EXPECT_EQ(rules_.version(), 1);
  EXPECT_EQ(rules_.next_sync_step(), 1);
  ExpectStart(Result::kOpen, 1, 1, 1);
}

TEST_F(ChunkRulesTest, SyncNamesWhomAStepWaitsFor) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  Take(0, 1, 0);
  auto start = Ask(0, 1, 1);
  ASSERT_TRUE(start.ok());
  const std::vector<v1::TaskId> waiting_for = rules_.WaitingFor(window_, *start, 16);
  ASSERT_EQ(waiting_for.size(), 1u);
  EXPECT_EQ(waiting_for[0].index(), 1u);
}

TEST_F(ChunkRulesTest, OfManyMembersAsManyAreNamedAsAreWanted) {
  std::vector<uint32_t> members(100);
  std::iota(members.begin(), members.end(), 0);
  Enter(MakePlan(1, v1::SYNC, 0, members));
  for (uint32_t worker : members) ExpectStart(Result::kOpen, worker, 1, 0);
  // From the last to the first: what was awaited last is not the one that comes.
  for (uint32_t worker = 99; worker > 40; --worker) EXPECT_EQ(Take(worker, 1, 0).result, Pushed::kPending);
  EXPECT_EQ(rules_.Awaited(window_, 1000).size(), 41u);
  const std::vector<v1::TaskId> named = rules_.Awaited(window_, 3);
  ASSERT_EQ(named.size(), 3u);
  EXPECT_EQ(named[2].index(), 2u);
  for (uint32_t worker = 40; worker > 0; --worker) EXPECT_EQ(Take(worker, 1, 0).result, Pushed::kPending);
  const ChunkRules::Push last = Take(0, 1, 0);
  ASSERT_TRUE(last.update.has_value());
  ASSERT_EQ(last.update->contributions.size(), 100u);
  for (uint32_t worker : members) EXPECT_EQ(last.update->contributions[worker].header->task.index(), worker);
}

TEST_F(ChunkRulesTest, SyncMakesAVersionOfEmptyContributions) {
  Enter(MakePlan(1, v1::SYNC, 0, {0}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  ChunkRules::Push push = Take(0, 1, 0, 0);
  ASSERT_TRUE(push.update.has_value());
  EXPECT_FALSE(push.update->ineffective);
  EXPECT_EQ(rules_.version(), 1);
}

TEST_F(ChunkRulesTest, AsyncAppliesAtOnceAndMakesNoVersionOfNothing) {
  Enter(MakePlan(1, v1::ASYNC, 0, {0, 1}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kApplied);
  EXPECT_EQ(rules_.version(), 1);
  ExpectStart(Result::kOpen, 0, 1, 1);
  ChunkRules::Push push = Take(0, 1, 1, 0);
  ASSERT_TRUE(push.update.has_value());
  EXPECT_TRUE(push.update->ineffective);
  EXPECT_EQ(rules_.version(), 1);
}

TEST_F(ChunkRulesTest, SspHoldsWhoIsMoreThanTheBoundAhead) {
  Enter(MakePlan(1, v1::SSP, 0, {0, 1}, 2));
  for (int64_t step = 0; step < 3; ++step) {
    ExpectStart(Result::kOpen, 0, 1, step);
    Take(0, 1, step);
  }
  ExpectStart(Result::kWait, 0, 1, 3);
  ExpectStart(Result::kOpen, 1, 1, 0);
  Take(1, 1, 0);
  ExpectStart(Result::kOpen, 0, 1, 3);
}

TEST_F(ChunkRulesTest, ARepeatedPushIsADuplicate) {
  Enter(MakePlan(1, v1::ASYNC, 0, {0}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  Take(0, 1, 0);
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kDuplicate);
  ExpectStart(Result::kOpen, 0, 1, 1);
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kDuplicate);
  EXPECT_EQ(rules_.version(), 1);
}

TEST_F(ChunkRulesTest, ARepeatedPendingPushCountsOnce) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  ExpectStart(Result::kOpen, 1, 1, 0);
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kPending);
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kPending);
  EXPECT_EQ(Take(1, 1, 0).update->contributions.size(), 2u);
}

TEST_F(ChunkRulesTest, RefusesPushesOfStepsThatWereNotBegun) {
  Enter(MakePlan(1, v1::ASYNC, 0, {0}));
  EXPECT_TRUE(absl::IsFailedPrecondition(Check(0, 1, 0)));  // Not begun.
  ExpectStart(Result::kOpen, 0, 1, 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(Check(0, 1, 1)));  // Another step.
  EXPECT_TRUE(absl::IsFailedPrecondition(Check(0, 2, 0)));  // A plan that is not known.
  EXPECT_TRUE(absl::IsFailedPrecondition(Check(7, 1, 0)));  // No member.
  EXPECT_TRUE(Check(0, 1, 0).ok());
}

TEST_F(ChunkRulesTest, RefusesStartsOutOfTurn) {
  Enter(MakePlan(1, v1::ASYNC, 3, {0}));
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(0, 1, 2).status()));  // Before the plan.
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(0, 1, 4).status()));  // Leaves one out.
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(1, 1, 3).status()));  // No member.
  ExpectStart(Result::kOpen, 0, 1, 3);
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(0, 1, 4).status()));  // Still at work.
  ExpectStart(Result::kOpen, 0, 1, 3);                             // The answer may have been lost.
}

TEST_F(ChunkRulesTest, HoldsNewStartsWhileAChangeIsAnnounced) {
  Enter(MakePlan(1, v1::ASYNC, 0, {0, 1}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  window_.Announce(2);
  ExpectStart(Result::kWait, 1, 1, 0);
  ExpectStart(Result::kOpen, 0, 1, 0);  // Begun before.
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kApplied);
  auto start = Ask(0, 1, 1);
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->result, Result::kWait);
  EXPECT_EQ(start->wait, ChunkRules::Wait::kCoordinator);
  EXPECT_TRUE(rules_.WaitingFor(window_, *start, 16).empty());
}

TEST_F(ChunkRulesTest, WaitsForAPlanThatItHasNotHeardOf) {
  Enter(MakePlan(1, v1::ASYNC, 0, {0}));
  ExpectStart(Result::kWait, 0, 2, 5);
}

TEST_F(ChunkRulesTest, LeavingAsyncMovesEverybodyAndSyncWaitsForStepsAtWork) {
  Enter(MakePlan(1, v1::ASYNC, 0, {0, 1}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  ExpectStart(Result::kOpen, 1, 1, 0);
  Take(1, 1, 0);
  Enter(MakePlan(2, v1::SYNC, 4, {0, 1}));
  auto start = Ask(1, 1, 1);
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->result, Result::kMoved);
  EXPECT_EQ(start->next_step, 4);
  EXPECT_FALSE(rules_.StartsWith(window_, 4));
  ExpectStart(Result::kWait, 1, 2, 4);  // Worker 0 works on a step of plan 1.
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kApplied);
  EXPECT_TRUE(rules_.StartsWith(window_, 4));
  ExpectStart(Result::kOpen, 1, 2, 4);
  ExpectStart(Result::kOpen, 0, 2, 4);
}

TEST_F(ChunkRulesTest, AskingForTheNewPlanGivesUpAStepOfTheOldOne) {
  Enter(MakePlan(1, v1::ASYNC, 0, {0, 1}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  Enter(MakePlan(2, v1::SYNC, 1, {0, 1}));
  ExpectStart(Result::kWait, 1, 2, 1);
  ExpectStart(Result::kOpen, 0, 2, 1);
  ExpectStart(Result::kOpen, 1, 2, 1);
  EXPECT_FALSE(Check(0, 1, 0).ok());  // It has said that no push would come.
}

TEST_F(ChunkRulesTest, LeavingSyncReleasesHeldStartsUntilAllFinishTheSameStep) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  window_.Announce(2);
  ExpectStart(Result::kWait, 1, 1, 0);
  Enter(MakePlan(2, v1::ASYNC, 1, {0, 1, 2}));
  ExpectStart(Result::kOpen, 1, 1, 0);
  ExpectStart(Result::kWait, 2, 2, 1);  // The SYNC step is not complete.
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kPending);
  EXPECT_TRUE(Take(1, 1, 0).update.has_value());
  ExpectStart(Result::kMoved, 0, 1, 1);
  ExpectStart(Result::kOpen, 0, 2, 1);
  ExpectStart(Result::kOpen, 2, 2, 1);
}

TEST_F(ChunkRulesTest, ALateCopyOfAStartOfTheSyncPlanDoesNotPutItsSenderBack) {
  Enter(MakePlan(1, v1::SYNC, 0, {0}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  Enter(MakePlan(2, v1::ASYNC, 1, {0}));
  Take(0, 1, 0);
  ExpectStart(Result::kOpen, 0, 2, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(0, 1, 0).status()));
  EXPECT_TRUE(Check(0, 2, 1).ok());
}

TEST_F(ChunkRulesTest, AQuorumCompletesAStepAndDropsTheLate) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1, 2}, 0, 2));
  for (uint32_t worker : {0u, 1u, 2u}) ExpectStart(Result::kOpen, worker, 1, 0);
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kPending);
  EXPECT_EQ(Take(2, 1, 0).update->contributions.size(), 2u);
  ChunkRules::Push late = Take(1, 1, 0);
  EXPECT_EQ(late.result, Pushed::kDropped);
  ASSERT_TRUE(late.update.has_value());
  EXPECT_TRUE(late.update->ineffective);
  EXPECT_EQ(rules_.version(), 1);
  ExpectStart(Result::kOpen, 1, 1, 1);
}

TEST_F(ChunkRulesTest, DropsPushesThatAreAsStaleAsTheLimit) {
  ChunkRules rules(0, /*staleness_limit=*/2);
  ASSERT_EQ(window_.Commit(MakePlan(1, v1::ASYNC, 0, {0, 1})), PlanWindow::Change::kEntered);
  rules.EnterPlan(window_);
  const auto push = [&](uint32_t worker, int64_t step, int64_t base, uint64_t examples = 8) {
    rules.NoteStartRequest(window_, Worker(worker), 1, step);
    EXPECT_TRUE(rules.AskStart(window_, Worker(worker), 1, step).ok());
    rules.Begin(Worker(worker), step);
    Contribution made = PushOf(worker, 1, step, examples);
    made.base_version = base;
    return rules.TakePush(window_, made);
  };
  EXPECT_EQ(push(0, 0, 0).result, Pushed::kApplied);
  const ChunkRules::Push stale_by_one = push(1, 0, 0);
  EXPECT_EQ(stale_by_one.result, Pushed::kApplied);
  EXPECT_TRUE(stale_by_one.update->is_one_push);
  EXPECT_EQ(rules.version(), 2);
  const ChunkRules::Push stale_by_two = push(0, 1, 0);
  EXPECT_EQ(stale_by_two.result, Pushed::kDropped);
  EXPECT_TRUE(stale_by_two.update->ineffective);
  EXPECT_EQ(stale_by_two.update->contributions[0].examples, 0u);
  EXPECT_EQ(rules.version(), 2);  // What was dropped makes nobody's push staler.
  EXPECT_EQ(push(1, 1, 1).result, Pushed::kApplied);
  EXPECT_EQ(push(0, 2, 2).result, Pushed::kApplied);
  // There is nothing in it to drop.
  EXPECT_EQ(push(1, 2, 0, /*examples=*/0).result, Pushed::kApplied);
}

TEST_F(ChunkRulesTest, NoStalenessLimitIsForSync) {
  ChunkRules rules(0, /*staleness_limit=*/1);
  ASSERT_EQ(window_.Commit(MakePlan(1, v1::SYNC, 0, {0})), PlanWindow::Change::kEntered);
  rules.EnterPlan(window_);
  for (int64_t step = 0; step < 3; ++step) {
    rules.NoteStartRequest(window_, Worker(0), 1, step);
    rules.Begin(Worker(0), step);
    const ChunkRules::Push push = rules.TakePush(window_, PushOf(0, 1, step));  // All of version 0.
    EXPECT_EQ(push.result, Pushed::kApplied);
    EXPECT_FALSE(push.update->is_one_push);
  }
}

TEST_F(ChunkRulesTest, ALaggardIsMovedToTheStepInCollection) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1}, 0, 1));
  ExpectStart(Result::kOpen, 1, 1, 0);
  for (int64_t step = 0; step < 3; ++step) {
    ExpectStart(Result::kOpen, 0, 1, step);
    Take(0, 1, step);
  }
  EXPECT_EQ(Take(1, 1, 0).result, Pushed::kDropped);
  auto start = Ask(1, 1, 1);
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->result, Result::kMoved);
  EXPECT_EQ(start->next_step, 3);
  ExpectStart(Result::kOpen, 1, 1, 3);
}

TEST_F(ChunkRulesTest, AQuorumThatIsLostDoesNotWaitForThoseWhoWereMovedPastTheStep) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1, 2}, 0, 2));
  for (uint32_t worker : {0u, 1u, 2u}) ExpectStart(Result::kOpen, worker, 1, 0);
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kPending);
  ExpectStart(Result::kWait, 2, 1, 1);  // Another chunk moved worker 2 past step 0.
  std::optional<ChunkRules::Update> update = Lose(1);
  ASSERT_TRUE(update.has_value());
  EXPECT_EQ(update->contributions.size(), 1u);
  ExpectStart(Result::kOpen, 2, 1, 1);
}

TEST_F(ChunkRulesTest, AStepThatEverybodyWasMovedPastIsLeftOut) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1}, 0, 1));
  ExpectStart(Result::kOpen, 0, 1, 0);
  ExpectStart(Result::kWait, 1, 1, 2);  // Moved there by another chunk, where worker 0 was the quorum.
  EXPECT_FALSE(Lose(0).has_value());
  EXPECT_EQ(rules_.next_sync_step(), 2);
  EXPECT_EQ(rules_.version(), 0);
  ExpectStart(Result::kOpen, 1, 1, 2);
}

TEST_F(ChunkRulesTest, LeavingAQuorumCompletesWhatIsPendingWhenNobodyElseComes) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1, 2}, 0, 2));
  for (uint32_t worker : {0u, 1u}) ExpectStart(Result::kOpen, worker, 1, 0);
  EXPECT_EQ(Take(0, 1, 0).result, Pushed::kPending);
  Enter(MakePlan(2, v1::ASYNC, 1, {0, 1, 2}));
  ExpectStart(Result::kMoved, 2, 1, 0);
  ExpectStart(Result::kWait, 2, 2, 1);
  const std::optional<ChunkRules::Update> update =
      rules_.NoteStartRequest(window_, Worker(1), 2, 1);  // Gives its step up.
  ASSERT_TRUE(update.has_value());
  EXPECT_EQ(update->contributions.size(), 1u);
  ExpectStart(Result::kOpen, 2, 2, 1);
  ExpectStart(Result::kOpen, 0, 2, 1);
}

TEST_F(ChunkRulesTest, ALaggardOfAQuorumThatWasLeftGoesOnWithTheNewPlan) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1}, 0, 1));
  ExpectStart(Result::kOpen, 1, 1, 0);
  for (int64_t step = 0; step < 3; ++step) {
    ExpectStart(Result::kOpen, 0, 1, step);
    Take(0, 1, step);
  }
  Enter(MakePlan(2, v1::SSP, 3, {0, 1}, 1));
  EXPECT_EQ(Take(1, 1, 0).result, Pushed::kDropped);
  ExpectStart(Result::kMoved, 1, 1, 1);
  ExpectStart(Result::kOpen, 1, 2, 3);
}

TEST_F(ChunkRulesTest, LosingAMemberCompletesTheStepThatWaitedForIt) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  Take(0, 1, 0);
  std::optional<ChunkRules::Update> update = Lose(1);
  ASSERT_TRUE(update.has_value());
  EXPECT_EQ(update->contributions.size(), 1u);
  ExpectStart(Result::kOpen, 0, 1, 1);
}

TEST_F(ChunkRulesTest, LosingAMemberDropsItsPendingContribution) {
  Enter(MakePlan(1, v1::SYNC, 0, {0, 1}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  ExpectStart(Result::kOpen, 1, 1, 0);
  Take(1, 1, 0);
  EXPECT_FALSE(Lose(1).has_value());
  EXPECT_EQ(Take(0, 1, 0).update->contributions.size(), 1u);
}

TEST_F(ChunkRulesTest, ASyncPlanWhoseMembersAreAllLostHoldsNobodyUp) {
  Enter(MakePlan(1, v1::SYNC, 0, {0}));
  ExpectStart(Result::kOpen, 0, 1, 0);
  Enter(MakePlan(2, v1::SYNC, 1, {0, 1}));
  ExpectStart(Result::kWait, 1, 2, 1);
  EXPECT_FALSE(Lose(0).has_value());
  ExpectStart(Result::kOpen, 1, 2, 1);
}

TEST_F(ChunkRulesTest, UsesTheLearningRateAndTheMomentumOfThePlanThatTheStepBelongsTo) {
  v1::Plan plan = MakePlan(1, v1::ASYNC, 0, {0});
  plan.set_learning_rate_scale(0.5);
  plan.set_momentum(0.25);
  Enter(plan);
  ExpectStart(Result::kOpen, 0, 1, 0);
  Enter(MakePlan(2, v1::ASYNC, 1, {0}));
  const ChunkRules::Push first = Take(0, 1, 0);
  EXPECT_EQ(first.update->learning_rate_scale, 0.5);
  EXPECT_EQ(first.update->momentum, 0.25);
  ExpectStart(Result::kOpen, 0, 2, 1);
  const ChunkRules::Push second = Take(0, 2, 1);
  EXPECT_EQ(second.update->learning_rate_scale, 1);
  EXPECT_EQ(second.update->momentum, std::nullopt);
}

TEST_F(ChunkRulesTest, ASyncStepHasTheMomentumOfItsPlan) {
  v1::Plan plan = MakePlan(1, v1::SYNC, 0, {0});
  plan.set_momentum(0.0);
  Enter(plan);
  ExpectStart(Result::kOpen, 0, 1, 0);
  EXPECT_EQ(Take(0, 1, 0).update->momentum, 0.0);
}

TEST_F(ChunkRulesTest, BeginsNothingUnderAModeThatItDoesNotKnow) {
  Enter(MakePlan(1, v1::MODE_UNSPECIFIED, 0, {0}));
  auto start = rules_.AskStart(window_, Worker(0), 1, 0);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->result, ChunkRules::StartResult::kWait);
}

}  // namespace
}  // namespace rubato::server
