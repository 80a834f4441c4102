#include "cli/report/terminal_report.h"

#include <limits>
#include <string>

#include "absl/strings/str_split.h"
#include "cli/report/terminal_plot.h"
#include "cli/report/text_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TextTableTest, AlignsColumnsByCharactersNotBytes) {
  TextTable table({"mode", "n"});
  table.AddRow({"größer", "1"});
  table.AddRow({"a", "200"});
  EXPECT_EQ(table.Format(),
            "mode      n\n"
            "──────  ───\n"
            "größer    1\n"
            "a       200\n");
}

TEST(TerminalPlotTest, IsEmptyWithoutPoints) {
  EXPECT_EQ(PlotCurves({}, {}), "");
  EXPECT_EQ(PlotCurves({{"sync", {}}}, {}), "");
  EXPECT_EQ(PlotCurves({{"sync", {{0, std::numeric_limits<double>::quiet_NaN()}}}}, {}), "");
}

TEST(TerminalPlotTest, DrawsASinglePoint) { EXPECT_THAT(PlotCurves({{"sync", {{3, 0.5}}}}, {}), HasSubstr("●")); }

TEST(TerminalPlotTest, TellsCurvesApartByMarkersAndUsesColourOnlyWhenAsked) {
  std::vector<PlotSeries> series = {{"sync", {{0, 0}, {1, 1}}}, {"async", {{0, 1}, {1, 0}}}};
  PlotOptions options;
  std::string plain = PlotCurves(series, options);
  EXPECT_THAT(plain, HasSubstr("● sync"));
  EXPECT_THAT(plain, HasSubstr("▲ async"));
  EXPECT_THAT(plain, Not(HasSubstr("\x1b[")));
  options.color = true;
  EXPECT_THAT(PlotCurves(series, options), HasSubstr("\x1b[34m●"));
}

TEST(TerminalPlotTest, PutsTheHighestPointInTheFirstRowAndTheLowestInTheLast) {
  PlotOptions options;
  options.height = 5;
  options.width = 10;
  std::vector<std::string> lines = absl::StrSplit(PlotCurves({{"sync", {{0, 2}, {1, 4}}}}, options), '\n');
  EXPECT_THAT(lines[1], HasSubstr("4 ┤"));
  EXPECT_THAT(lines[1], HasSubstr("●"));
  EXPECT_THAT(lines[5], HasSubstr("2 ┤●"));
}

Comparison OneMode() {
  ComparedRun run;
  run.summary.ok = true;
  run.summary.final_accuracy = 0.9876;
  run.summary.staleness_mean = 1.25;
  run.summary.staleness_max = 4;
  v1::EvaluationLine line;
  line.set_t(2);
  line.set_accuracy(0.98);
  run.record.evaluations = {line};
  Comparison comparison;
  comparison.target = {.value = 0.985};
  comparison.modes = {{"ssp:2", {run}}};
  return comparison;
}

TEST(TerminalReportTest, TableSaysWhatWasMeasuredAndWhatWasNot) {
  std::string table = FormatTable(OneMode());
  EXPECT_THAT(table, HasSubstr("to 98.5 %"));
  EXPECT_THAT(table, HasSubstr("98.76 %"));
  EXPECT_THAT(table, HasSubstr("not reached"));
  EXPECT_THAT(table, HasSubstr("1.25 (max 4)"));
  EXPECT_THAT(table, HasSubstr("not logged"));
}

TEST(TerminalReportTest, WhereSomeRunsMissTheTargetTheMeanIsNotThatOfTheOthers) {
  Comparison comparison = OneMode();
  std::vector<ComparedRun>& runs = comparison.modes[0].runs;
  runs.push_back(runs[0]);
  runs[0].summary.seconds_to_target = 10;
  runs[1].summary.seconds = 30;
  EXPECT_THAT(FormatTable(comparison), HasSubstr(">20.0 s (1 of 2)"));
  EXPECT_THAT(FormatTable(comparison), HasSubstr("\n> where runs missed the target: the mean of what was seen of them "
                                                 "up to 30.0 s (Kaplan-Meier)\n"));
  runs[1].summary.seconds_to_target = 20;
  EXPECT_THAT(FormatTable(comparison), HasSubstr(" 15.0 s "));
  EXPECT_THAT(FormatTable(comparison), Not(HasSubstr("Kaplan-Meier")));
  runs[0].summary.seconds_to_target.reset();
  runs[1].summary.seconds_to_target.reset();
  EXPECT_THAT(FormatTable(comparison), HasSubstr("0 of 2 reached it"));
}

TEST(TerminalReportTest, TableSaysThatAModeFailed) {
  Comparison comparison = OneMode();
  comparison.modes[0].runs[0].summary.ok = false;
  EXPECT_THAT(FormatTable(comparison), HasSubstr("FAILED"));
}

TEST(TerminalReportTest, ARegressionShowsLossAndR2InsteadOfAnAccuracyOfZeroAndAnEmptyPlot) {
  Comparison comparison;
  ComparedRun run;
  run.summary.ok = true;
  run.summary.final_r2 = 0.93125;
  run.summary.final_loss = 0.0625;
  run.record.start.emplace().set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
  v1::EvaluationLine line;
  for (double r2 : {-0.5, 0.25, 0.9312}) {
    line.set_t(line.t() + 1);
    line.set_r2(r2);
    run.record.evaluations.push_back(line);
  }
  comparison.modes = {{"sync", {run}}};
  EXPECT_THAT(FormatTable(comparison), HasSubstr("mode      R2    loss"));
  EXPECT_THAT(FormatTable(comparison), HasSubstr("sync  0.9313  0.0625"));
  EXPECT_THAT(FormatTable(comparison), Not(HasSubstr("accuracy")));
  EXPECT_THAT(FormatCurves(comparison, false), HasSubstr("held-out R2"));
  EXPECT_THAT(FormatCurves(comparison, false), HasSubstr("0.9312 ┤"));
}

TEST(TerminalReportTest, OfTwoClassesTheAucComesFirst) {
  Comparison comparison = OneMode();
  ComparedRun& run = comparison.modes[0].runs[0];
  run.summary.final_auc = 0.71239;
  run.summary.final_loss = 0.5;
  run.record.evaluations[0].set_auc(0.6875);
  comparison.target = {};
  EXPECT_THAT(FormatTable(comparison), HasSubstr("mode      AUC  accuracy    loss"));
  EXPECT_THAT(FormatTable(comparison), HasSubstr("ssp:2  0.7124   98.76 %  0.5000"));
  EXPECT_THAT(FormatCurves(comparison, false), HasSubstr("held-out AUC"));
  EXPECT_THAT(FormatCurves(comparison, false), HasSubstr("0.7219"));
  comparison.target = {.metric = Metric::kAuc, .value = 0.7};
  EXPECT_THAT(FormatTable(comparison), HasSubstr("to AUC 0.7"));
  EXPECT_THAT(FormatTable(comparison), HasSubstr("not reached"));
  comparison.target = {.metric = Metric::kAccuracy, .value = 0.99};
  EXPECT_THAT(FormatTable(comparison), HasSubstr("mode   accuracy     AUC    loss      to 99 %"));
  EXPECT_THAT(FormatCurves(comparison, false), HasSubstr("held-out accuracy"));
}

TEST(TerminalReportTest, ARegressionHasAnRmse) {
  Comparison comparison;
  ComparedRun run;
  run.summary.final_r2 = 0.25;
  run.summary.final_rmse = 1.25;
  v1::EvaluationLine line;
  line.set_r2(0.25);
  line.set_loss(1.5625);
  run.record.evaluations.push_back(line);
  comparison.modes = {{"sync", {run}}};
  EXPECT_THAT(FormatTable(comparison), HasSubstr("mode      R2    RMSE  loss"));
  comparison.target = {.metric = Metric::kRmse, .value = 1.5};
  EXPECT_THAT(FormatTable(comparison), HasSubstr("mode    RMSE      R2  loss  to RMSE 1.5"));
  EXPECT_THAT(FormatCurves(comparison, false), HasSubstr("held-out RMSE"));
  EXPECT_THAT(FormatCurves(comparison, false), HasSubstr("1.25"));
}

TEST(TerminalReportTest, OfClientsThatEvaluateNothingItShowsTheirTraining) {
  Comparison comparison;
  ComparedRun run;
  run.summary.ok = true;
  run.summary.training_loss = 0.0625;
  run.summary.steps_per_second = 12.55;
  comparison.modes = {{"sync", {run}}};
  EXPECT_THAT(FormatTable(comparison), HasSubstr("mode  training loss  steps/s  version"));
  EXPECT_THAT(FormatTable(comparison), HasSubstr("sync         0.0625     12.6  "));
  comparison.modes[0].runs[0].summary.examples_per_second = 640;
  comparison.modes[0].runs[0].summary.training_accuracy = 0.5;
  EXPECT_THAT(FormatTable(comparison), HasSubstr("sync            50.00 %         0.0625         640  "));
}

TEST(TerminalReportTest, SaysWhatWasSkipped) {
  Comparison comparison = OneMode();
  EXPECT_THAT(FormatTable(comparison), Not(HasSubstr("skipped")));
  v1::EndLine& end = comparison.modes[0].runs[0].record.end.emplace();
  end.set_ok(true);
  end.set_non_finite(2);
  end.set_overflows(3);
  comparison.modes[0].runs.push_back(comparison.modes[0].runs[0]);
  EXPECT_THAT(FormatTable(comparison), HasSubstr("\nssp:2: 6 steps skipped because gradients overflowed in FP16\n"
                                                 "ssp:2: 4 steps with a loss or gradient that was not finite\n"));
}

TEST(TerminalReportTest, SaysWhereAJobWentBackTo) {
  Comparison comparison = OneMode();
  EXPECT_THAT(FormatTable(comparison), Not(HasSubstr("went back")));
  std::vector<v1::RollbackLine>& rollbacks = comparison.modes[0].runs[0].record.rollbacks;
  rollbacks.resize(2);
  rollbacks[0].set_step(150);
  rollbacks[0].set_reason("server 1 lost");
  rollbacks[1].set_reason("resumed");
  EXPECT_THAT(FormatTable(comparison), HasSubstr("\nssp:2: went back to step 150 (server 1 lost)\n"
                                                 "ssp:2: went back to its beginning (resumed)\n"));
}

TEST(TerminalReportTest, DrawsTheLossWhereThereWasNoEvaluation) {
  Comparison comparison = OneMode();
  EXPECT_THAT(FormatCurves(comparison, false), HasSubstr("held-out accuracy"));
  comparison.modes[0].runs[0].record.evaluations.clear();
  EXPECT_EQ(FormatCurves(comparison, false), "");
  v1::ProgressLine line;
  line.set_loss(0.5);
  comparison.modes[0].runs[0].record.progress = {line};
  EXPECT_THAT(FormatCurves(comparison, false), HasSubstr("training loss"));
}

}  // namespace
}  // namespace rubato
