#include "cli/audit/member_clocks.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(MemberClocksTest, RemembersTheSlowestAtEachVersion) {
  MemberClocks clocks({true, true, false}, 5, 10);
  clocks.Advance(0, 6, 11);
  EXPECT_EQ(clocks.slowest(), 5);
  clocks.Advance(1, 6, 12);
  clocks.Advance(1, 7, 13);
  clocks.Advance(0, 7, 14);
  EXPECT_EQ(clocks.SlowestAt(10), 5);
  EXPECT_EQ(clocks.SlowestAt(11), 5);
  EXPECT_EQ(clocks.SlowestAt(12), 6);
  EXPECT_EQ(clocks.SlowestAt(13), 6);
  EXPECT_EQ(clocks.SlowestAt(14), 7);
  EXPECT_EQ(clocks.SlowestAt(99), 7);
}

TEST(MemberClocksTest, StrangersAndStepsBackChangeNothing) {
  MemberClocks clocks({true, false}, 5, 0);
  clocks.Advance(1, 1, 1);
  clocks.Advance(7, 1, 1);
  clocks.Advance(0, 3, 2);
  EXPECT_EQ(clocks.SlowestAt(2), 5);
  EXPECT_FALSE(clocks.Has(1));
}

TEST(MemberClocksTest, LostMembersNoLongerHoldTheOthers) {
  MemberClocks clocks({true, true}, 0, 0);
  clocks.Advance(0, 4, 1);
  clocks.Keep({true, false}, 2);
  EXPECT_EQ(clocks.SlowestAt(1), 0);
  EXPECT_EQ(clocks.SlowestAt(2), 4);
  clocks.Keep({}, 3);
  EXPECT_EQ(clocks.slowest(), MemberClocks::kNobody);
}

TEST(MemberClocksTest, CapHoldsForVersionsBefore) {
  MemberClocks clocks({true, true}, 10, 3);
  clocks.CapBefore(5, 9);
  EXPECT_EQ(clocks.SlowestAt(3), 9);
  EXPECT_EQ(clocks.SlowestAt(4), 9);
  EXPECT_EQ(clocks.SlowestAt(5), 10);
  clocks.CapBefore(7, 9);
  EXPECT_EQ(clocks.SlowestAt(6), 9);
  EXPECT_EQ(clocks.SlowestAt(7), 10);
}

TEST(MemberClocksTest, ForgettingKeepsWhatCanStillBeAsked) {
  MemberClocks clocks({true}, 0, 0);
  for (int step = 1; step <= 100; ++step) clocks.Advance(0, step, step);
  clocks.Forget(90);
  EXPECT_EQ(clocks.remembered(), 11u);
  EXPECT_EQ(clocks.SlowestAt(90), 90);
  EXPECT_EQ(clocks.SlowestAt(95), 95);
}

TEST(MemberClocksTest, EverybodyAdvances) {
  MemberClocks clocks({true, true}, 0, 0);
  clocks.Advance(0, 5, 1);
  clocks.AdvanceAll(2, 2);
  EXPECT_EQ(clocks.SlowestAt(1), 0);
  EXPECT_EQ(clocks.SlowestAt(2), 2);
}

}  // namespace
}  // namespace rubato
