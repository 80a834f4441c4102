#include "server/rules/check_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

std::string Refusal(const v1::Plan& plan, const v1::Plan& current = {}) {
  return std::string(CheckPlan(plan, current).message());
}

TEST(CheckPlanTest, TakesWhatACoordinatorDecides) {
  const v1::Plan first = MakePlan(1, v1::SYNC, 0, {0, 1, 2}, 0, 2);
  EXPECT_EQ(Refusal(first), "");
  EXPECT_EQ(Refusal(first, first), "");
  const v1::Plan amended = Without(first, 1);
  EXPECT_EQ(Refusal(amended, first), "");
  EXPECT_EQ(Refusal(first, amended), "");
  EXPECT_EQ(Refusal(Without(amended, 0), first), "");
  EXPECT_EQ(Refusal(WithCut(MakePlan(2, v1::SSP, 0, {0, 1, 3}, 4), 1), first), "");
  EXPECT_EQ(Refusal(MakePlan(5, v1::ASYNC, 7, {}), first), "");
  EXPECT_EQ(Refusal(MakePlan(1, v1::SSP, -1, {3, 3}), MakePlan(2, v1::SYNC, 9, {0})), "") << "an old plan";
}

TEST(CheckPlanTest, RefusesNumbersThatNoPlanHas) {
  const v1::Plan good = MakePlan(1, v1::SYNC, 0, {0});
  v1::Plan plan = good;
  plan.set_generation(0);
  EXPECT_EQ(Refusal(plan), "plan.generation: 0; 1 or more is allowed");
  plan = good;
  plan.set_mode(static_cast<v1::Mode>(77));
  EXPECT_EQ(Refusal(plan), "plan.mode: 77; SYNC, SSP and ASYNC are allowed");
  plan = good;
  plan.set_staleness_bound(-1);
  EXPECT_EQ(Refusal(plan), "plan.staleness_bound: -1; 0 or more is allowed");
  plan = good;
  plan.set_first_step(-5);
  EXPECT_EQ(Refusal(plan), "plan.first_step: -5; 0 or more is allowed");
  for (const double number : {-0.5, std::nan(""), std::numeric_limits<double>::infinity()}) {
    plan = good;
    plan.set_learning_rate_scale(number);
    EXPECT_NE(Refusal(plan), "") << number;
    plan = good;
    plan.set_momentum(number);
    EXPECT_NE(Refusal(plan), "") << number;
  }
}

TEST(CheckPlanTest, RefusesMembersThatCannotBe) {
  v1::Plan plan = MakePlan(1, v1::SYNC, 0, {0, 3, 3});
  EXPECT_EQ(Refusal(plan), "plan.members[2].index: 3; each worker is a member once");
  EXPECT_EQ(Refusal(MakePlan(1, v1::SYNC, 0, {0, 4095})), "");
  EXPECT_EQ(Refusal(MakePlan(1, v1::SYNC, 0, {0, 4294967295})),
            "plan.members[1].index: 4294967295; 0 to 4095 is allowed");
  plan.mutable_members()->RemoveLast();
  plan.mutable_members(1)->set_role(v1::TaskId::SERVER);
  EXPECT_EQ(Refusal(plan), "plan.members[1].role: 2; WORKER is allowed");
  *plan.mutable_members(1) = Worker(3, 0);
  EXPECT_EQ(Refusal(plan), "plan.members[1].incarnation: 0; another number is allowed");
}

TEST(CheckPlanTest, AnAmendmentTakesMembersOutAndDoesNothingElse) {
  const v1::Plan current = MakePlan(3, v1::SSP, 10, {0, 1}, 2);
  v1::Plan plan = Without(current, 1);
  *plan.add_members() = Worker(2);
  EXPECT_EQ(Refusal(plan, current), "plan.members: worker 2; an amendment of plan 3 has members of that plan");
  *plan.mutable_members(1) = Worker(1, 9);
  EXPECT_EQ(Refusal(plan, current), "plan.members: worker 1; an amendment of plan 3 has members of that plan");
  plan = Without(current, 1);
  plan.set_staleness_bound(3);
  EXPECT_EQ(Refusal(plan, current), "plan.amendment: 1; an amendment of plan 3 changes nothing but its members");
}

TEST(CheckPlanTest, ALaterPlanDoesNotBeginEarlier) {
  EXPECT_EQ(Refusal(MakePlan(4, v1::SYNC, 9, {0}), MakePlan(3, v1::SYNC, 10, {0})),
            "plan.first_step: 9; 10, that of plan 3, or more is allowed");
}

TEST(TakenPlanTest, KeepsTheNewestAndTellsARefusalOnce) {
  TakenPlan taken;
  int refusals = 0;
  const auto take = [&](const v1::Plan& plan) { return taken.Take(plan, [&](const absl::Status&) { ++refusals; }); };
  const v1::Plan first = MakePlan(1, v1::SYNC, 0, {0, 1}), second = MakePlan(2, v1::ASYNC, 5, {0, 1});
  EXPECT_TRUE(take(first));
  EXPECT_TRUE(take(second));
  EXPECT_TRUE(take(first));
  EXPECT_EQ(taken.plan().generation(), 2u);
  const v1::Plan bad = MakePlan(3, v1::ASYNC, 4, {0});
  EXPECT_FALSE(take(bad));
  EXPECT_FALSE(take(bad));
  EXPECT_EQ(refusals, 1);
  EXPECT_FALSE(take(MakePlan(4, v1::ASYNC, 4, {0})));
  EXPECT_EQ(refusals, 2);
  EXPECT_EQ(taken.plan().generation(), 2u);
}

}  // namespace
}  // namespace rubato::server
