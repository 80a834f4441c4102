#include "server/rules/step_gate.h"

#include <gtest/gtest.h>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

std::vector<uint32_t> Indices(const std::vector<v1::TaskId>& tasks) {
  std::vector<uint32_t> indices;
  for (const v1::TaskId& task : tasks) indices.push_back(task.index());
  return indices;
}

TEST(StepGateTest, NewMembersStartAtThePlansFirstStep) {
  StepGate gate;
  gate.EnterPlan(MakePlan(1, v1::ASYNC, 7, {0, 1}), false);
  ASSERT_NE(gate.Find(Worker(1)), nullptr);
  EXPECT_EQ(gate.Find(Worker(1))->clock, 7);
  EXPECT_FALSE(gate.Find(Worker(1))->draining);
  EXPECT_EQ(gate.Find(Worker(2)), nullptr);
}

TEST(StepGateTest, FindsOnlyTheIncarnationThatIsAMember) {
  StepGate gate;
  gate.EnterPlan(MakePlan(1, v1::ASYNC, 0, {0}), false);
  EXPECT_EQ(gate.Find(Worker(0, 2)), nullptr);
}

TEST(StepGateTest, NamesThoseWhoseClockIsBehind) {
  StepGate gate;
  gate.EnterPlan(MakePlan(1, v1::SSP, 0, {0, 1, 2}, 2), false);
  gate.Find(Worker(0))->clock = 4;
  gate.Find(Worker(1))->clock = 2;
  gate.Find(Worker(2))->clock = 3;
  EXPECT_EQ(Indices(gate.Behind(3)), (std::vector<uint32_t>{1}));
  EXPECT_EQ(Indices(gate.Behind(4)), (std::vector<uint32_t>{1, 2}));
  EXPECT_TRUE(gate.Behind(2).empty());
  EXPECT_EQ(gate.LowestClock(), 2);
}

TEST(StepGateTest, MembersAtWorkDrainIntoTheNextPlanAndOthersJump) {
  StepGate gate;
  gate.EnterPlan(MakePlan(1, v1::ASYNC, 0, {0, 1}), false);
  gate.Find(Worker(0))->clock = 3;
  gate.Find(Worker(0))->begun = 3;
  gate.Find(Worker(0))->working = true;
  gate.Find(Worker(1))->clock = 5;
  gate.EnterPlan(MakePlan(2, v1::SYNC, 9, {0, 1}), false);
  EXPECT_TRUE(gate.Find(Worker(0))->draining);
  EXPECT_EQ(gate.Find(Worker(0))->clock, 8);
  EXPECT_FALSE(gate.Find(Worker(1))->draining);
  EXPECT_EQ(gate.Find(Worker(1))->clock, 9);
}

TEST(StepGateTest, KeepsClocksWhereEverybodyFinishesTheSameStep) {
  StepGate gate;
  gate.EnterPlan(MakePlan(1, v1::SYNC, 0, {0, 1}), false);
  gate.Find(Worker(0))->clock = 3;
  gate.Find(Worker(0))->working = true;
  gate.EnterPlan(MakePlan(2, v1::ASYNC, 4, {0, 1, 2}), true);
  EXPECT_EQ(gate.Find(Worker(0))->clock, 3);
  EXPECT_FALSE(gate.Find(Worker(0))->draining);
  EXPECT_EQ(gate.Find(Worker(2))->clock, 4);
}

TEST(StepGateTest, AnAmendmentForgetsTheLostAndLeavesTheOthers) {
  StepGate gate;
  const v1::Plan plan = MakePlan(1, v1::SSP, 0, {0, 1}, 1);
  gate.EnterPlan(plan, false);
  gate.Find(Worker(1))->clock = 4;
  gate.Amend(Without(plan, 0));
  EXPECT_EQ(gate.Find(Worker(0)), nullptr);
  EXPECT_EQ(gate.Find(Worker(1))->clock, 4);
  EXPECT_TRUE(gate.Behind(4).empty());
}

TEST(StepGateTest, NobodyIsBehindWhereThereAreNoMembers) {
  StepGate gate;
  gate.EnterPlan(MakePlan(1, v1::SYNC, 3, {}), false);
  EXPECT_TRUE(gate.Behind(100).empty());
  EXPECT_EQ(gate.LowestClock(), -1);
}

}  // namespace
}  // namespace rubato::server
