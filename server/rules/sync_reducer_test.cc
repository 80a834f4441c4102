#include "server/rules/sync_reducer.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

SyncReducer Of(const std::vector<uint32_t>& members) {
  SyncReducer reducer;
  reducer.SetMembers(std::make_shared<const MemberList>(MakePlan(1, v1::SYNC, 0, members)));
  return reducer;
}

TEST(SyncReducerTest, GivesContributionsInOrderOfMemberWhateverTheirArrival) {
  SyncReducer reducer = Of({0, 1, 2});
  for (uint32_t worker : {2u, 0u, 1u}) EXPECT_TRUE(reducer.Add(PushOf(worker, 1, 0)));
  std::vector<Contribution> all = reducer.Take();
  ASSERT_EQ(all.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(all[i].header->task.index(), i);
  EXPECT_TRUE(reducer.empty());
}

TEST(SyncReducerTest, KeepsTheFirstOfTwoContributionsOfOneWorker) {
  SyncReducer reducer = Of({0, 1});
  EXPECT_TRUE(reducer.Add(PushOf(0, 1, 0, 8)));
  EXPECT_FALSE(reducer.Add(PushOf(0, 1, 0, 9)));
  std::vector<Contribution> all = reducer.Take();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].examples, 8u);
}

TEST(SyncReducerTest, KnowsWhoHasContributed) {
  SyncReducer reducer = Of({1});
  reducer.Add(PushOf(1, 1, 0));
  EXPECT_TRUE(reducer.Has(Worker(1)));
  EXPECT_FALSE(reducer.Has(Worker(1, 2)));
  EXPECT_FALSE(reducer.Has(Worker(0)));
  reducer.Take();
  EXPECT_FALSE(reducer.Has(Worker(1)));
}

TEST(SyncReducerTest, HasAQuorumOnlyWhereThePlanHasOne) {
  SyncReducer reducer = Of({0, 1});
  reducer.Add(PushOf(0, 1, 0));
  reducer.Add(PushOf(1, 1, 0));
  EXPECT_TRUE(reducer.HasQuorum(MakePlan(1, v1::SYNC, 0, {0, 1, 2}, 0, 2)));
  EXPECT_FALSE(reducer.HasQuorum(MakePlan(1, v1::SYNC, 0, {0, 1, 2}, 0, 3)));
  EXPECT_FALSE(reducer.HasQuorum(MakePlan(1, v1::SYNC, 0, {0, 1})));
}

TEST(SyncReducerTest, DropsContributionsOfTheLostAndOfEarlierIncarnations) {
  SyncReducer reducer = Of({0, 1});
  reducer.Add(PushOf(0, 1, 0));
  reducer.Add(PushOf(1, 1, 0));
  v1::Plan plan = MakePlan(1, v1::SYNC, 0, {0, 1, 2});
  *plan.mutable_members(0) = Worker(0, 2);
  reducer.SetMembers(std::make_shared<const MemberList>(plan));
  EXPECT_FALSE(reducer.Has(Worker(0)));
  EXPECT_TRUE(reducer.Has(Worker(1)));
  EXPECT_TRUE(reducer.Add(PushOf(HeaderOf(Worker(0, 2), 1, 0))));
  EXPECT_TRUE(reducer.Add(PushOf(2, 1, 0)));
  reducer.SetMembers(std::make_shared<const MemberList>());
  EXPECT_TRUE(reducer.empty());
  EXPECT_FALSE(reducer.Add(PushOf(2, 1, 0)));
}

}  // namespace
}  // namespace rubato::server
