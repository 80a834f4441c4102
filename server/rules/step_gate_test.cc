#include "server/rules/step_gate.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

std::vector<uint32_t> Indices(const std::vector<v1::TaskId>& tasks) {
  std::vector<uint32_t> indices;
  for (const v1::TaskId& task : tasks) indices.push_back(task.index());
  return indices;
}

void Enter(StepGate& gate, const v1::Plan& plan, bool keep_clocks) {
  gate.EnterPlan(std::make_shared<const MemberList>(plan), plan.first_step(), keep_clocks);
}

TEST(StepGateTest, NewMembersStartAtThePlansFirstStep) {
  StepGate gate;
  Enter(gate, MakePlan(1, v1::ASYNC, 7, {0, 1}), false);
  ASSERT_NE(gate.Find(Worker(1)), nullptr);
  EXPECT_EQ(gate.clock(Worker(1)), 7);
  EXPECT_FALSE(gate.Find(Worker(1))->draining);
  EXPECT_EQ(gate.Find(Worker(2)), nullptr);
}

TEST(StepGateTest, FindsOnlyTheIncarnationThatIsAMember) {
  StepGate gate;
  Enter(gate, MakePlan(1, v1::ASYNC, 0, {0}), false);
  EXPECT_EQ(gate.Find(Worker(0, 2)), nullptr);
}

TEST(StepGateTest, NamesThoseWhoseClockIsBehind) {
  StepGate gate;
  Enter(gate, MakePlan(1, v1::SSP, 0, {0, 1, 2}, 2), false);
  gate.SetClock(Worker(0), 4);
  gate.SetClock(Worker(1), 2);
  gate.SetClock(Worker(2), 3);
  EXPECT_EQ(Indices(gate.Behind(3, 16)), (std::vector<uint32_t>{1}));
  EXPECT_EQ(Indices(gate.Behind(4, 16)), (std::vector<uint32_t>{1, 2}));
  EXPECT_TRUE(gate.Behind(2, 16).empty());
  EXPECT_EQ(Indices(gate.Behind(4, 1)), (std::vector<uint32_t>{1}));
  EXPECT_EQ(gate.LowestClock(), 2);
  EXPECT_TRUE(gate.IsReached(2));
  EXPECT_FALSE(gate.IsReached(3));
}

TEST(StepGateTest, TheLowestClockFollowsWhoeverHasIt) {
  StepGate gate;
  Enter(gate, MakePlan(1, v1::ASYNC, 0, {0, 1, 5}), false);
  const auto set = [&](uint32_t worker, int64_t clock) { gate.SetClock(Worker(worker), clock); };
  set(0, 1);
  set(1, 2);
  EXPECT_EQ(gate.LowestClock(), 0);
  set(5, 1);
  EXPECT_EQ(gate.LowestClock(), 1);
  set(0, 3);
  EXPECT_EQ(gate.LowestClock(), 1);
  set(5, 1);
  set(5, 7);
  EXPECT_EQ(gate.LowestClock(), 2);
  set(0, 2);
  set(1, 9);
  EXPECT_EQ(gate.LowestClock(), 2);
  set(0, 9);
  EXPECT_EQ(gate.LowestClock(), 7);
  set(1, 4);
  EXPECT_EQ(gate.LowestClock(), 4);
  for (const auto& [slot, clock] : {std::pair(size_t{0}, 9), {1, 4}, {2, 7}}) EXPECT_EQ(gate.clock(slot), clock);
}

TEST(StepGateTest, MembersAtWorkDrainIntoTheNextPlanAndOthersJump) {
  StepGate gate;
  Enter(gate, MakePlan(1, v1::ASYNC, 0, {0, 1}), false);
  gate.SetClock(Worker(0), 3);
  gate.Find(Worker(0))->begun = 3;
  gate.Find(Worker(0))->working = true;
  gate.SetClock(Worker(1), 5);
  Enter(gate, MakePlan(2, v1::SYNC, 9, {0, 1}), false);
  EXPECT_TRUE(gate.Find(Worker(0))->draining);
  EXPECT_EQ(gate.clock(Worker(0)), 8);
  EXPECT_FALSE(gate.Find(Worker(1))->draining);
  EXPECT_EQ(gate.clock(Worker(1)), 9);
}

TEST(StepGateTest, KeepsClocksWhereEverybodyFinishesTheSameStep) {
  StepGate gate;
  Enter(gate, MakePlan(1, v1::SYNC, 0, {0, 1}), false);
  gate.SetClock(Worker(0), 3);
  gate.Find(Worker(0))->working = true;
  Enter(gate, MakePlan(2, v1::ASYNC, 4, {0, 1, 2}), true);
  EXPECT_EQ(gate.clock(Worker(0)), 3);
  EXPECT_FALSE(gate.Find(Worker(0))->draining);
  EXPECT_EQ(gate.clock(Worker(2)), 4);
}

TEST(StepGateTest, AnAmendmentForgetsTheLostAndLeavesTheOthers) {
  StepGate gate;
  const v1::Plan plan = MakePlan(1, v1::SSP, 0, {0, 1}, 1);
  Enter(gate, plan, false);
  gate.SetClock(Worker(1), 4);
  gate.Amend(std::make_shared<const MemberList>(Without(plan, 0)));
  EXPECT_EQ(gate.Find(Worker(0)), nullptr);
  EXPECT_EQ(gate.clock(Worker(1)), 4);
  EXPECT_TRUE(gate.Behind(4, 16).empty());
}

TEST(StepGateTest, NobodyIsBehindWhereThereAreNoMembers) {
  StepGate gate;
  Enter(gate, MakePlan(1, v1::SYNC, 3, {}), false);
  EXPECT_TRUE(gate.Behind(100, 16).empty());
  EXPECT_EQ(gate.LowestClock(), -1);
}

}  // namespace
}  // namespace rubato::server
