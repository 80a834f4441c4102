#include "cli/report/comparison.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

TEST(ComparisonTest, TheTargetIsReachedOnlyWhenEveryRunReachedIt) {
  ComparedRun reached;
  reached.summary.seconds_to_target = 12.5;
  Comparison comparison;
  comparison.target = {.value = 0.985};
  comparison.modes = {{"sync", {reached}}, {"async", {ComparedRun()}}};
  EXPECT_FALSE(AllReachedTarget(comparison));
  comparison.modes[1].runs[0].summary.seconds_to_target = 3;
  EXPECT_TRUE(AllReachedTarget(comparison));
  comparison.modes[1].runs[0].summary.seconds_to_target.reset();
  comparison.target = {};
  EXPECT_TRUE(AllReachedTarget(comparison));
}

TEST(ComparisonTest, AuditOfAModeIsItsWorstRuns) {
  ComparedRun held;
  held.audit = AuditResult::kHeld;
  ComparedRun broken;
  broken.audit = AuditResult::kBroken;
  EXPECT_EQ(AuditOfMode({"sync", {held, held}}), AuditResult::kHeld);
  EXPECT_EQ(AuditOfMode({"sync", {held, ComparedRun()}}), AuditResult::kNotLogged);
  EXPECT_EQ(AuditOfMode({"sync", {held, broken}}), AuditResult::kBroken);
  EXPECT_EQ(AuditOfMode({"sync", {}}), AuditResult::kNotLogged);
}

}  // namespace
}  // namespace rubato
