#include "cli/report/html_report.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHostile[] = "</script><script>alert('\"&')</script>";

Comparison HostileComparison() {
  ComparedRun run;
  run.seed = 7;
  run.summary.error = kHostile;
  run.record.start.emplace();
  v1::MemberLine& member = run.record.members.emplace_back();
  member.set_task(kHostile);
  member.set_event(v1::MemberLine::EVICTED);
  member.set_reason(kHostile);
  for (uint32_t generation : {1, 2}) {
    v1::PlanLine& plan = run.record.plans.emplace_back();
    plan.set_generation(generation);
    plan.set_mode(generation == 1 ? v1::SYNC : v1::ASYNC);
    plan.set_reason(kHostile);
  }
  Comparison comparison;
  comparison.job = kHostile;
  comparison.config_text = kHostile;
  comparison.slowed = kHostile;
  comparison.target = {.value = 0.9};
  comparison.modes = {{kHostile, {run, run}}};
  return comparison;
}

// The page's data as its script reads it.
nlohmann::json DataOf(const std::string& page) {
  const std::string opening = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(opening) + opening.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(HtmlReportTest, WhateverComesFromTheRunsIsDataAndNoMarkup) {
  std::string page = HtmlReport(HostileComparison());
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  const nlohmann::json data = DataOf(page);
  EXPECT_EQ(data["job"], kHostile);
  EXPECT_EQ(data["config"], kHostile);
  EXPECT_EQ(data["slowed"], kHostile);
  EXPECT_EQ(data["modes"][0]["runs"][0]["error"], kHostile);
  EXPECT_EQ(data["modes"][0]["runs"][0]["evictions"][0]["task"], kHostile);
  EXPECT_EQ(data["modes"][0]["runs"][0]["switches"][0]["reason"], kHostile);
}

TEST(HtmlReportTest, TheScriptsMakeNoMarkupOfTexts) {
  const std::string page = HtmlReport(Comparison());
  // The one that is there is a constant.
  EXPECT_EQ(page.find("innerHTML"), page.rfind("innerHTML"));
  for (const char* way : {"outerHTML", "insertAdjacentHTML", "document.write", "eval("}) {
    EXPECT_THAT(page, Not(HasSubstr(way)));
  }
}

TEST(HtmlReportTest, RefersToNothingOutsideItself) {
  std::string page = HtmlReport(HostileComparison());
  for (const char* reference : {"http:", "https:", "src=", "href=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  }
}

TEST(HtmlReportTest, DataHasTheSummaryAndWhatTheChartsDraw) {
  Comparison comparison = HostileComparison();
  comparison.modes[0].runs[0].summary.final_loss = 0.5;
  v1::EvaluationLine& line = comparison.modes[0].runs[0].record.evaluations.emplace_back();
  line.set_t(2);
  line.set_step(40);
  line.set_accuracy(0.75);
  line.set_diverged(true);
  const nlohmann::json data = DataOf(HtmlReport(comparison));
  EXPECT_EQ(data["target_accuracy"], 0.9);
  EXPECT_EQ(data["target"].dump(), R"({"metric":"final_accuracy","value":0.9})");
  EXPECT_EQ(data["regression"], false);
  EXPECT_EQ(data["modes"][0]["mode"], kHostile);
  ASSERT_EQ(data["modes"][0]["runs"].size(), 2u);
  const nlohmann::json& run = data["modes"][0]["runs"][0];
  EXPECT_EQ(run["final_loss"], 0.5);
  EXPECT_EQ(run["switches"].size(), 1u);
  EXPECT_EQ(run["switches"][0]["mode"], "ASYNC");
  EXPECT_EQ(run["evaluations"].dump(), "[[2.0,0.0,40.0,null,0.75,null,null,null]]");
}

TEST(HtmlReportTest, ARegressionShowsR2InsteadOfAnEmptyPlot) {
  Comparison comparison = HostileComparison();
  ComparedRun& run = comparison.modes[0].runs[0];
  run.record.start->set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
  run.record.evaluations.emplace_back().set_r2(0.875);
  run.summary.final_r2 = 0.875;
  const nlohmann::json data = DataOf(HtmlReport(comparison));
  EXPECT_EQ(data["regression"], true);
  EXPECT_EQ(data["modes"][0]["runs"][0]["final_r2"], 0.875);
  EXPECT_EQ(data["modes"][0]["runs"][0]["evaluations"][0][4], 0.875);
}

TEST(HtmlReportTest, OfTwoClassesTheAucComesFirst) {
  Comparison comparison = HostileComparison();
  ComparedRun& run = comparison.modes[0].runs[0];
  v1::EvaluationLine& line = run.record.evaluations.emplace_back();
  line.set_accuracy(0.75);
  line.set_auc(0.875);
  run.summary.final_accuracy = 0.75;
  run.summary.final_auc = 0.875;
  comparison.target = {};
  nlohmann::json data = DataOf(HtmlReport(comparison));
  EXPECT_EQ(data["metrics"].dump(), R"(["final_auc","final_accuracy"])");
  EXPECT_TRUE(data["target"].is_null());
  EXPECT_EQ(data["modes"][0]["runs"][0]["evaluations"][0][5], 0.875);
  comparison.target = {.metric = Metric::kAccuracy, .value = 0.9};
  data = DataOf(HtmlReport(comparison));
  EXPECT_EQ(data["metrics"].dump(), R"(["final_accuracy","final_auc"])");
}

TEST(HtmlReportTest, OfClientsThatEvaluateNothingItShowsTheirTraining) {
  Comparison comparison = HostileComparison();
  ComparedRun& run = comparison.modes[0].runs[0];
  v1::ProgressLine& line = run.record.progress.emplace_back();
  line.set_loss(0.5);
  line.set_accuracy(0.75);
  run.summary.training_accuracy = 0.75;
  run.summary.steps_per_second = 12.5;
  const nlohmann::json data = DataOf(HtmlReport(comparison));
  EXPECT_EQ(data["evaluated"], false);
  EXPECT_EQ(data["has_examples"], false);
  EXPECT_EQ(data["modes"][0]["runs"][0]["training_accuracy"], 0.75);
  EXPECT_TRUE(data["modes"][0]["runs"][0]["training_loss"].is_null());
  EXPECT_EQ(data["modes"][0]["runs"][0]["steps_per_second"], 12.5);
  EXPECT_EQ(data["modes"][0]["runs"][0]["progress"].dump(), "[[0.0,0.0,0.0,0.5,0.0,0.75,null]]");
}

TEST(HtmlReportTest, StalenessIsThatOfThePushesSinceThePointBefore) {
  Comparison comparison = HostileComparison();
  // The job goes back to a checkpoint before the last one.
  for (const auto& [none, one] : {std::pair(4.0, 0.0), {4, 0}, {5, 3}, {1, 1}}) {
    v1::ProgressLine& line = comparison.modes[0].runs[0].record.progress.emplace_back();
    line.add_staleness_counts(none);
    line.add_staleness_counts(one);
  }
  const nlohmann::json progress = DataOf(HtmlReport(comparison))["modes"][0]["runs"][0]["progress"];
  ASSERT_EQ(progress.size(), 4u);
  EXPECT_EQ(progress[0][6], 0);
  EXPECT_TRUE(progress[1][6].is_null());
  EXPECT_EQ(progress[2][6], 0.75);
  EXPECT_EQ(progress[3][6], 0.5);
}

TEST(HtmlReportTest, ThinsOutLongCurvesButKeepsTheirEnd) {
  Comparison comparison = HostileComparison();
  v1::ProgressLine line;
  for (int i = 0; i < 20000; ++i) {
    line.set_step(i);
    comparison.modes[0].runs[0].record.progress.push_back(line);
  }
  std::string page = HtmlReport(comparison);
  EXPECT_LT(page.size(), 200000u);
  EXPECT_THAT(page, HasSubstr("[0.0,0.0,19999.0,null,0.0,null,null]"));
}

TEST(HtmlReportTest, ListsRollbacksAndTheLastCheckpoints) {
  Comparison comparison = HostileComparison();
  RunRecord& record = comparison.modes[0].runs[0].record;
  v1::RollbackLine& rollback = record.rollbacks.emplace_back();
  rollback.set_step(150);
  rollback.set_reason(kHostile);
  for (int i = 1; i <= 60; ++i) record.checkpoints.emplace_back().set_name("step" + std::to_string(i));
  const nlohmann::json data = DataOf(HtmlReport(comparison));
  const nlohmann::json& run = data["modes"][0]["runs"][0];
  ASSERT_EQ(run["rollbacks"].size(), 1u);
  EXPECT_EQ(run["rollbacks"][0]["step"], 150);
  EXPECT_EQ(run["rollbacks"][0]["reason"], kHostile);
  ASSERT_EQ(run["checkpoints"].size(), 50u);
  EXPECT_EQ(run["checkpoints"][49]["name"], "step60");
}

TEST(HtmlReportTest, NamesOfModesAreDataInTheNotesToo) {
  Comparison comparison = HostileComparison();
  for (ComparedRun& run : comparison.modes[0].runs) run.summary.seconds = 5;
  comparison.modes.push_back({"async", comparison.modes[0].runs});
  const std::string page = HtmlReport(comparison);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  const nlohmann::json against = DataOf(page)["against_baseline"];
  EXPECT_EQ(against["baseline"], kHostile);
  ASSERT_FALSE(against["notes"].empty());
  EXPECT_THAT(against["notes"][0].get<std::string>(), HasSubstr(kHostile));
}

TEST(HtmlReportTest, SaysThatDataWasGenerated) {
  Comparison comparison = HostileComparison();
  EXPECT_EQ(DataOf(HtmlReport(comparison))["data"], "real");
  comparison.generated_data = true;
  EXPECT_EQ(DataOf(HtmlReport(comparison))["data"], "generated");
}

TEST(HtmlReportTest, WorksWithoutRuns) { EXPECT_THAT(HtmlReport(Comparison()), HasSubstr("</html>")); }

}  // namespace
}  // namespace rubato
