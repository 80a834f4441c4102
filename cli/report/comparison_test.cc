#include "cli/report/comparison.h"

#include <nlohmann/json.hpp>

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

TEST(ComparisonTest, SummaryJsonHasTheDocumentedFields) {
  nlohmann::json summary = nlohmann::json::parse(SummaryJson(TwoModes()));
  EXPECT_EQ(summary["job"], "mnist \"quoted\"");
  EXPECT_EQ(summary["target_accuracy"], 0.985);
  EXPECT_EQ(summary["data"], "real");
  ASSERT_EQ(summary["modes"].size(), 2u);
  const nlohmann::json& run = summary["modes"][0]["runs"][0];
  EXPECT_EQ(run["seed"], 1);
  EXPECT_EQ(run["directory"], "sync-seed1");
  EXPECT_EQ(run["ok"], true);
  EXPECT_EQ(run["seconds_to_target"], 12.5);
  EXPECT_EQ(run["audit"], "held");
  EXPECT_TRUE(run["final_loss"].is_null());
  EXPECT_TRUE(run["final_r2"].is_null());
  EXPECT_EQ(summary["modes"][0]["mean"]["examples_per_second"], 1000.0);
}

TEST(ComparisonTest, SummaryJsonSaysWhyARunFailed) {
  nlohmann::json summary = nlohmann::json::parse(SummaryJson(TwoModes()));
  const nlohmann::json& run = summary["modes"][1]["runs"][0];
  EXPECT_EQ(run["ok"], false);
  EXPECT_EQ(run["error"], "worker 0: killed");
  EXPECT_TRUE(run["seconds_to_target"].is_null());
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
