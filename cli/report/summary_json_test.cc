#include "cli/report/summary_json.h"

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
  slow.summary.seconds = 60;
  slow.summary.ok = false;
  slow.summary.error = "worker 0: killed";
  Comparison comparison;
  comparison.job = "mnist \"quoted\"";
  comparison.target = {.value = 0.985};
  comparison.modes = {{"sync", {run}}, {"async", {slow}}};
  return comparison;
}

TEST(SummaryJsonTest, HasTheDocumentedFields) {
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
  EXPECT_TRUE(run["samples_to_target"].is_null());
  EXPECT_EQ(summary["modes"][0]["mean"]["examples_per_second"], 1000.0);
  const nlohmann::json& to_target = summary["modes"][0]["to_target"];
  EXPECT_EQ(to_target["runs"], 1);
  EXPECT_EQ(to_target["reached"], 1);
  EXPECT_EQ(to_target["seconds"]["restricted_mean"], 12.5);
  EXPECT_TRUE(to_target["updates"]["restricted_mean"].is_null());
}

TEST(SummaryJsonTest, HasTheTargetsMetric) {
  Comparison comparison = TwoModes();
  comparison.target = {.metric = Metric::kAuc, .value = 0.75};
  comparison.modes[0].runs[0].summary.final_auc = 0.8;
  nlohmann::json summary = nlohmann::json::parse(SummaryJson(comparison));
  EXPECT_EQ(summary["target"].dump(), R"({"metric":"final_auc","value":0.75})");
  EXPECT_EQ(summary["target_accuracy"], 0);
  EXPECT_EQ(summary["modes"][0]["mean"]["final_auc"], 0.8);
  EXPECT_TRUE(summary["modes"][1]["mean"]["final_rmse"].is_null());
  EXPECT_EQ(summary["modes"][0]["to_target"]["reached"], 1);
  comparison.target = {};
  summary = nlohmann::json::parse(SummaryJson(comparison));
  EXPECT_TRUE(summary["target"].is_null());
  EXPECT_TRUE(summary["modes"][0]["to_target"].is_null());
}

TEST(SummaryJsonTest, HasTheRatesThatWereTried) {
  Comparison comparison = TwoModes();
  Tuning tuning = {.mode = "sync", .runs = {{.learning_rate = 0.1}, {.learning_rate = 0.2}}, .best = 1};
  comparison.tunings = {tuning, {.mode = "async"}};
  const nlohmann::json summary = nlohmann::json::parse(SummaryJson(comparison));
  ASSERT_EQ(summary["tunings"].size(), 2u);
  EXPECT_EQ(summary["tunings"][0]["learning_rate"], 0.2);
  EXPECT_EQ(summary["tunings"][0]["at_edge"], true);
  EXPECT_EQ(summary["tunings"][0]["runs"][0]["learning_rate"], 0.1);
  EXPECT_TRUE(summary["tunings"][1]["learning_rate"].is_null());
}

TEST(SummaryJsonTest, SaysWhyARunFailed) {
  nlohmann::json summary = nlohmann::json::parse(SummaryJson(TwoModes()));
  const nlohmann::json& run = summary["modes"][1]["runs"][0];
  EXPECT_EQ(run["ok"], false);
  EXPECT_EQ(run["error"], "worker 0: killed");
  EXPECT_TRUE(run["seconds_to_target"].is_null());
}

TEST(SummaryJsonTest, HasTheResultsAgainstTheBaseline) {
  Comparison comparison = TwoModes();
  for (ComparedMode& mode : comparison.modes) {
    mode.runs[0].summary.ok = true;
    mode.runs.push_back(mode.runs[0]);
    mode.runs[1].seed = 2;
  }
  const nlohmann::json against = nlohmann::json::parse(SummaryJson(comparison))["against_baseline"];
  EXPECT_EQ(against["baseline"], "sync");
  EXPECT_EQ(against["seeds"], 2);
  EXPECT_EQ(against["pairs_needed"], 6);
  ASSERT_EQ(against["results"].size(), 3u);
  const nlohmann::json& accuracy = against["results"][0];
  EXPECT_EQ(accuracy["mode"], "async");
  EXPECT_EQ(accuracy["quantity"], "final_accuracy");
  EXPECT_EQ(accuracy["kind"], "difference");
  EXPECT_EQ(accuracy["estimate"], 0.0);
  EXPECT_EQ(accuracy["pairs"], 2);
  EXPECT_EQ(accuracy["enough_pairs"], false);
  EXPECT_EQ(against["results"][1]["quantity"], "examples_per_second");
  EXPECT_EQ(against["results"][2]["missed"], 2);
}

TEST(SummaryJsonTest, OneModeIsComparedWithNothing) {
  Comparison comparison = TwoModes();
  comparison.modes.pop_back();
  EXPECT_TRUE(nlohmann::json::parse(SummaryJson(comparison))["against_baseline"].is_null());
}

}  // namespace
}  // namespace rubato
