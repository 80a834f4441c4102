#include "cli/report/run_summary.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

EvaluationLine Evaluation(double t, double accuracy, bool final = false) {
  EvaluationLine line;
  line.t = t;
  line.accuracy = accuracy;
  line.loss = 1 - accuracy;
  line.final = final;
  return line;
}

ProgressLine Progress(double t, int64_t examples) {
  ProgressLine line;
  line.t = t;
  line.examples = examples;
  return line;
}

TEST(RunSummaryTest, TimeToTargetIsThatOfTheFirstEvaluationAtTheTarget) {
  RunRecord record;
  record.evaluations = {Evaluation(1, 0.9), Evaluation(2, 0.985), Evaluation(3, 0.99), Evaluation(4, 0.98, true)};
  RunSummary summary = SummarizeRun(record, 0.985);
  EXPECT_EQ(summary.seconds_to_target, 2.0);
  EXPECT_EQ(summary.final_accuracy, 0.98);
  EXPECT_NEAR(*summary.final_loss, 0.02, 1e-12);
}

TEST(RunSummaryTest, HasNoTimeToATargetThatWasNotReachedOrNotSet) {
  RunRecord record;
  record.evaluations = {Evaluation(1, 0.9)};
  EXPECT_FALSE(SummarizeRun(record, 0.95).seconds_to_target.has_value());
  EXPECT_FALSE(SummarizeRun(record, 0).seconds_to_target.has_value());
}

TEST(RunSummaryTest, ThroughputIsTheEndLines) {
  RunRecord record;
  record.progress = {Progress(1, 500), Progress(2, 1200)};
  record.end.emplace();
  record.end->t = 10;
  record.end->examples_per_second = 640;
  record.end->ok = true;
  RunSummary summary = SummarizeRun(record, 0);
  EXPECT_DOUBLE_EQ(summary.examples_per_second, 640);
  EXPECT_DOUBLE_EQ(summary.seconds, 10);
  EXPECT_TRUE(summary.ok);
}

TEST(RunSummaryTest, ThroughputWithoutAnEndStopsAtTheLastExample) {
  RunRecord record;
  record.progress = {Progress(1, 500), Progress(2, 1200), Progress(3, 1200)};
  EXPECT_DOUBLE_EQ(SummarizeRun(record, 0).examples_per_second, 600);
}

TEST(RunSummaryTest, StalenessComesFromTheLastHistogram) {
  RunRecord record;
  record.progress = {Progress(1, 1), Progress(2, 2)};
  record.progress[0].staleness_counts = {0, 0, 0, 0, 9};
  record.progress[1].staleness_counts = {10, 20, 0, 10, 0};
  RunSummary summary = SummarizeRun(record, 0);
  EXPECT_DOUBLE_EQ(summary.staleness_mean, 50.0 / 40);
  EXPECT_EQ(summary.staleness_max, 3);
}

TEST(RunSummaryTest, WaitingShareIsOverAllWorkersTime) {
  RunRecord record;
  record.progress = {Progress(1, 1)};
  record.progress[0].waiting_share = 0.9;
  EXPECT_DOUBLE_EQ(SummarizeRun(record, 0).waiting_share, 0.9);
  WorkerTotals a{.data_seconds = 1, .compute_seconds = 2, .push_seconds = 1, .pull_wait_seconds = 0};
  WorkerTotals b{.data_seconds = 0, .compute_seconds = 2, .push_seconds = 0, .pull_wait_seconds = 2};
  record.progress[0].workers = {a, b};
  EXPECT_DOUBLE_EQ(SummarizeRun(record, 0).waiting_share, 0.25);
}

TEST(RunSummaryTest, ARecordWithoutAnEndIsNotOk) {
  RunSummary summary = SummarizeRun(RunRecord(), 0.9);
  EXPECT_FALSE(summary.ok);
  EXPECT_FALSE(summary.error.empty());
  EXPECT_FALSE(summary.final_accuracy.has_value());
  EXPECT_EQ(summary.examples_per_second, 0);
}

TEST(RunSummaryTest, MeanIsAbsentWhereARunLacksTheNumber) {
  RunSummary a;
  a.ok = true;
  a.final_accuracy = 0.98;
  a.seconds_to_target = 10;
  a.examples_per_second = 100;
  a.staleness_max = 2;
  RunSummary b = a;
  b.final_accuracy = 0.96;
  b.seconds_to_target.reset();
  b.examples_per_second = 300;
  b.staleness_max = 5;
  RunSummary mean = MeanOfRuns({a, b});
  EXPECT_TRUE(mean.ok);
  EXPECT_DOUBLE_EQ(*mean.final_accuracy, 0.97);
  EXPECT_FALSE(mean.seconds_to_target.has_value());
  EXPECT_DOUBLE_EQ(mean.examples_per_second, 200);
  EXPECT_EQ(mean.staleness_max, 5);
}

TEST(RunSummaryTest, OneFailedRunMakesItsModeFailed) {
  RunSummary good;
  good.ok = true;
  RunSummary bad;
  bad.error = "server 1: lost";
  RunSummary mean = MeanOfRuns({good, bad});
  EXPECT_FALSE(mean.ok);
  EXPECT_EQ(mean.error, "server 1: lost");
  EXPECT_FALSE(MeanOfRuns({}).ok);
}

}  // namespace
}  // namespace rubato
