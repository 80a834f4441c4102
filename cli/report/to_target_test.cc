#include "cli/report/to_target.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

ComparedRun Reached(double seconds) {
  ComparedRun run;
  run.summary.seconds_to_target = seconds;
  run.summary.samples_to_target = seconds * 100;
  run.summary.seconds = 30;
  run.summary.samples = 3000;
  return run;
}

ComparedRun Missed(double seconds) {
  ComparedRun run;
  run.summary.seconds = seconds;
  run.summary.samples = seconds * 100;
  return run;
}

TEST(ToTargetTest, ARunThatMissesTheTargetIsCensoredAtItsEnd) {
  EXPECT_EQ(ToTarget(Reached(5).summary, Effort::kSeconds)->at, 5);
  EXPECT_TRUE(ToTarget(Reached(5).summary, Effort::kSeconds)->reached);
  EXPECT_EQ(ToTarget(Missed(20).summary, Effort::kSamples)->at, 2000);
  EXPECT_FALSE(ToTarget(Missed(20).summary, Effort::kSamples)->reached);
}

TEST(ToTargetTest, SaysNothingThatTheRecordDoesNotSay) {
  EXPECT_FALSE(ToTarget(Reached(5).summary, Effort::kUpdates).has_value());
  EXPECT_FALSE(ToTarget(Missed(0).summary, Effort::kSeconds).has_value());
}

TEST(ToTargetTest, ModesAreComparedUpToWhereAllOfThemWereSeen) {
  Comparison comparison;
  comparison.modes = {{"sync", {Reached(5), Reached(15)}}, {"async", {Reached(2), Missed(10)}}};
  const double horizon = TargetHorizon(comparison, Effort::kSeconds);
  EXPECT_EQ(horizon, 10);
  const ModeToTarget sync = ToTargetOfMode(comparison.modes[0], Effort::kSeconds, horizon);
  EXPECT_EQ(sync.reached, 2);
  EXPECT_DOUBLE_EQ(*sync.restricted_mean, 7.5);
  const ModeToTarget async = ToTargetOfMode(comparison.modes[1], Effort::kSeconds, horizon);
  EXPECT_EQ(async.runs, 2);
  EXPECT_EQ(async.reached, 1);
  EXPECT_DOUBLE_EQ(*async.restricted_mean, 6);
}

TEST(ToTargetTest, WhereAllRunsReachedItTheRestrictedMeanIsTheMean) {
  Comparison comparison;
  comparison.modes = {{"sync", {Reached(5), Reached(15)}}, {"async", {Reached(2), Reached(4)}}};
  const double horizon = TargetHorizon(comparison, Effort::kSeconds);
  EXPECT_DOUBLE_EQ(*ToTargetOfMode(comparison.modes[0], Effort::kSeconds, horizon).restricted_mean, 10);
  EXPECT_DOUBLE_EQ(*ToTargetOfMode(comparison.modes[1], Effort::kSeconds, horizon).restricted_mean, 3);
}

}  // namespace
}  // namespace rubato
