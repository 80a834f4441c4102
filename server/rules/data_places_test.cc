#include "server/rules/data_places.h"

#include <gtest/gtest.h>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

v1::ShardSlice Slice(uint64_t shard, int64_t begin, int64_t end) {
  v1::ShardSlice slice;
  slice.set_shard(shard);
  slice.set_begin(begin);
  slice.set_end(end);
  return slice;
}

class DataPlacesTest : public testing::Test {
 protected:
  DataPlacesTest() { places_.OnPlan(plan_, true); }
  void Enter(uint64_t generation, const std::vector<uint32_t>& members) {
    plan_ = MakePlan(generation, v1::ASYNC, 10, members);
    places_.OnPlan(plan_, true);
  }
  void Lose(uint32_t worker) {
    plan_ = Without(plan_, worker);
    places_.OnPlan(plan_, false);
  }

  v1::Plan plan_ = MakePlan(1, v1::ASYNC, 0, {0, 1});
  DataPlaces places_;
};

TEST_F(DataPlacesTest, SaysHowFarALostWorkerCame) {
  places_.Note(Worker(0), 3, Slice(1, 0, 10));
  places_.Note(Worker(0), 4, Slice(5, 20, 25));
  places_.Note(Worker(1), 4, Slice(2, 0, 10));
  EXPECT_TRUE(places_.Lost().empty());
  Lose(0);
  ASSERT_EQ(places_.Lost().size(), 1u);
  const v1::LostWorker lost = places_.Lost()[0];
  EXPECT_EQ(lost.task().index(), 0u);
  EXPECT_EQ(lost.step(), 4);
  EXPECT_EQ(lost.trained().shard(), 5u);
  EXPECT_EQ(lost.trained().next(), 25);
}

TEST_F(DataPlacesTest, AStepWithoutABatchLeavesTheWorkerWhereItWas) {
  places_.Note(Worker(0), 3, Slice(1, 0, 10));
  places_.Note(Worker(0), 4, v1::ShardSlice());
  places_.Note(Worker(1), 4, v1::ShardSlice());
  Lose(0);
  Lose(1);
  ASSERT_EQ(places_.Lost().size(), 1u);
  EXPECT_EQ(places_.Lost()[0].trained().next(), 10);
}

TEST_F(DataPlacesTest, WhatComesLateToAnotherChunkChangesNothing) {
  places_.Note(Worker(0), 4, Slice(1, 10, 20));
  places_.Note(Worker(0), 3, Slice(1, 0, 10));
  Lose(0);
  EXPECT_EQ(places_.Lost()[0].trained().next(), 20);
}

TEST_F(DataPlacesTest, RemembersALostWorkerForThePresentPlanAndTheNext) {
  places_.Note(Worker(0), 3, Slice(1, 0, 10));
  Lose(0);
  Lose(1);
  EXPECT_EQ(places_.Lost().size(), 1u);
  Enter(2, {1});
  EXPECT_EQ(places_.Lost().size(), 1u);
  Enter(3, {1});
  EXPECT_TRUE(places_.Lost().empty());
}

TEST_F(DataPlacesTest, ANewIncarnationTakesNothingOfTheOldOne) {
  places_.Note(Worker(0), 3, Slice(1, 0, 10));
  v1::Plan plan = MakePlan(2, v1::ASYNC, 10, {1});
  *plan.add_members() = Worker(0, 2);
  places_.OnPlan(plan, true);
  places_.Note(Worker(0, 2), 10, Slice(1, 10, 20));
  ASSERT_EQ(places_.Lost().size(), 1u);
  EXPECT_EQ(places_.Lost()[0].task().incarnation(), 1u);
  EXPECT_EQ(places_.Lost()[0].trained().next(), 10);
}

}  // namespace
}  // namespace rubato::server
