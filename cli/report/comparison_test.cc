#include "cli/report/comparison.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

Comparison TwoModes() {
  ComparedRun run;
  run.seed = 1;
  run.directory = "sync-seed1";
  run.summary.ok = true;
  run.summary.final_accuracy = 0.99;
  run.summary.seconds_to_target = 12.5;
  run.summary.examples_per_second = 1000;
  run.audit = AuditResult::kHeld;
  ComparedRun slow = run;
  slow.directory = "async-seed1";
  slow.summary.seconds_to_target.reset();
  slow.summary.ok = false;
  slow.summary.error = "worker 0: killed";
  Comparison comparison;
  comparison.job = "mnist \"quoted\"";
  comparison.target_accuracy = 0.985;
  comparison.modes = {{"sync", {run}}, {"async", {slow}}};
  return comparison;
}

TEST(ComparisonTest, TheTargetIsReachedOnlyWhenEveryRunReachedIt) {
  Comparison comparison = TwoModes();
  EXPECT_FALSE(AllReachedTarget(comparison));
  comparison.modes[1].runs[0].summary.seconds_to_target = 3;
  EXPECT_TRUE(AllReachedTarget(comparison));
  comparison.modes[1].runs[0].summary.seconds_to_target.reset();
  comparison.target_accuracy = 0;
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
