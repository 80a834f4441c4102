#include "server/rules/plan_window.h"

#include <gtest/gtest.h>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

using Change = PlanWindow::Change;

class PlanWindowTest : public testing::Test {
 protected:
  PlanWindowTest() { EXPECT_EQ(window_.Commit(MakePlan(1, v1::SYNC, 0, {0, 1})), Change::kEntered); }

  PlanWindow window_;
};

TEST_F(PlanWindowTest, KeepsThePlanBeforeWhileItsStepsDrain) {
  EXPECT_FALSE(window_.previous().has_value());
  EXPECT_EQ(window_.Commit(MakePlan(2, v1::ASYNC, 10, {0, 1})), Change::kEntered);
  EXPECT_TRUE(window_.left_sync());
  EXPECT_EQ(window_.PlanOf(1, 9)->generation(), 1u);
  EXPECT_EQ(window_.PlanOf(2, 10)->generation(), 2u);
  EXPECT_EQ(window_.PlanOf(1, 10), nullptr);
  EXPECT_EQ(window_.PlanOf(2, 9), nullptr);
  EXPECT_EQ(window_.PlanOf(3, 10), nullptr);
}

TEST_F(PlanWindowTest, WhatIsOldChangesNothing) {
  const v1::Plan amended = Without(window_.current(), 1);
  EXPECT_EQ(window_.Commit(amended), Change::kAmended);
  EXPECT_EQ(window_.Commit(amended), Change::kNone);
  EXPECT_EQ(window_.Commit(MakePlan(2, v1::SSP, 5, {0})), Change::kEntered);
  EXPECT_EQ(window_.Commit(amended), Change::kNone);
  EXPECT_EQ(window_.current().generation(), 2u);
}

TEST_F(PlanWindowTest, WhoIsLostIsLostToThePlanBeforeToo) {
  EXPECT_EQ(window_.Commit(MakePlan(2, v1::ASYNC, 10, {0, 1})), Change::kEntered);
  EXPECT_EQ(window_.Commit(Without(window_.current(), 1)), Change::kAmended);
  EXPECT_FALSE(window_.IsMember(Worker(1)));
  ASSERT_EQ(window_.previous()->members_size(), 1);
  EXPECT_EQ(window_.previous()->members(0).index(), 0u);
}

TEST_F(PlanWindowTest, HoldsStartsFromAnAnnouncementToItsEnd) {
  window_.Announce(1);
  EXPECT_EQ(window_.announced(), 0u);
  window_.Announce(3);
  window_.Announce(2);
  EXPECT_EQ(window_.announced(), 3u);
  EXPECT_FALSE(window_.Abort(2));
  EXPECT_EQ(window_.Commit(MakePlan(2, v1::ASYNC, 10, {0, 1})), Change::kEntered);
  EXPECT_EQ(window_.announced(), 3u);
  EXPECT_TRUE(window_.Abort(3));
  EXPECT_EQ(window_.announced(), 0u);
}

}  // namespace
}  // namespace rubato::server
