#include "cli/report/run_summary.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

v1::EvaluationLine Evaluation(double t, double accuracy, bool final = false) {
  v1::EvaluationLine line;
  line.set_t(t);
  line.set_accuracy(accuracy);
  line.set_loss(1 - accuracy);
  line.set_final(final);
  return line;
}

v1::ProgressLine Progress(double t, double examples) {
  v1::ProgressLine line;
  line.set_t(t);
  line.set_examples(examples);
  return line;
}

TEST(RunSummaryTest, TimeToTargetIsThatOfTheFirstEvaluationAtTheTarget) {
  RunRecord record;
  record.evaluations = {Evaluation(1, 0.9), Evaluation(2, 0.985), Evaluation(3, 0.99), Evaluation(4, 0.98, true)};
  RunSummary summary = SummarizeRun(record, {.value = 0.985});
  EXPECT_EQ(summary.seconds_to_target, 2.0);
  EXPECT_EQ(summary.final_accuracy, 0.98);
  EXPECT_NEAR(*summary.final_loss, 0.02, 1e-12);
}

TEST(RunSummaryTest, SamplesAndUpdatesToTargetAreThoseOfTheSameEvaluation) {
  RunRecord record;
  record.start.emplace().set_train_examples(1000);
  record.evaluations = {Evaluation(1, 0.9), Evaluation(2, 0.985)};
  record.evaluations[1].set_epoch(2);
  for (const double epoch : {1, 2, 3}) {
    record.progress.push_back(Progress(epoch, epoch * 1000));
    record.progress.back().set_epoch(epoch);
    record.progress.back().set_mode(v1::SYNC);
    record.progress.back().set_step(epoch * 10);
  }
  const RunSummary summary = SummarizeRun(record, {.value = 0.985});
  EXPECT_EQ(summary.samples_to_target, 2000);
  EXPECT_EQ(summary.updates_to_target, 20);
  EXPECT_EQ(summary.samples, 3000);
  EXPECT_EQ(summary.updates, 30);
  EXPECT_FALSE(SummarizeRun(record, {.value = 0.99}).updates_to_target.has_value());
}

TEST(RunSummaryTest, ARegressionHasR2InsteadOfAnAccuracyOfZero) {
  v1::EvaluationLine line;
  line.set_loss(0.25);
  line.set_r2(0.75);
  RunRecord record;
  record.evaluations = {line};
  const RunSummary summary = SummarizeRun(record, {});
  EXPECT_FALSE(summary.final_accuracy.has_value());
  EXPECT_EQ(summary.final_r2, 0.75);
  EXPECT_EQ(MeanOfRuns({summary, summary}).final_r2, 0.75);
}

TEST(RunSummaryTest, TheTargetMayBeAnAucToRiseToOrAnRmseToFallTo) {
  RunRecord record;
  for (const double t : {1, 2, 3}) {
    v1::EvaluationLine& line = record.evaluations.emplace_back();
    line.set_t(t);
    line.set_accuracy(0.99);
    line.set_auc(t / 4);
  }
  RunSummary summary = SummarizeRun(record, {.metric = Metric::kAuc, .value = 0.5});
  EXPECT_EQ(summary.seconds_to_target, 2);
  EXPECT_EQ(summary.final_auc, 0.75);
  EXPECT_FALSE(summary.final_recall.has_value());
  record.evaluations.back().set_recall(0.25);
  EXPECT_EQ(SummarizeRun(record, {}).final_recall, 0.25);
  EXPECT_FALSE(summary.final_rmse.has_value()) << "the loss of classes is no squared error";
  EXPECT_FALSE(SummarizeRun(record, {.metric = Metric::kAuc, .value = 0.8}).seconds_to_target.has_value());
  for (v1::EvaluationLine& line : record.evaluations) {
    line.clear_accuracy();
    line.clear_auc();
    line.set_r2(0.5);
    line.set_loss(16 / (line.t() * line.t()));
  }
  summary = SummarizeRun(record, {.metric = Metric::kRmse, .value = 2});
  EXPECT_EQ(summary.seconds_to_target, 2);
  EXPECT_DOUBLE_EQ(*summary.final_rmse, 4.0 / 3);
  EXPECT_FALSE(SummarizeRun(record, {.metric = Metric::kAuc, .value = 0.1}).seconds_to_target.has_value());
  EXPECT_DOUBLE_EQ(*MeanOfRuns({summary, summary}).final_rmse, 4.0 / 3);
}

TEST(RunSummaryTest, TrainingsNumbersAreThoseOfTheLastLineAndItsFirstTime) {
  RunRecord record;
  EXPECT_EQ(SummarizeRun(record, {}).steps_per_second, 0);
  EXPECT_FALSE(SummarizeRun(record, {}).training_loss.has_value());
  for (const double t : {1, 2, 3}) {
    v1::ProgressLine line;
    line.set_t(t);
    line.set_step(t < 2 ? 50 : 100);
    line.set_loss(1 / t);
    record.progress.push_back(line);
  }
  const RunSummary summary = SummarizeRun(record, {});
  EXPECT_EQ(summary.steps_per_second, 50);
  EXPECT_EQ(summary.training_loss, 1.0 / 3);
  EXPECT_FALSE(summary.training_accuracy.has_value());
  EXPECT_EQ(MeanOfRuns({summary, RunSummary()}).steps_per_second, 25);
}

TEST(RunSummaryTest, HasNoTimeToATargetThatWasNotReachedOrNotSet) {
  RunRecord record;
  record.evaluations = {Evaluation(1, 0.9)};
  EXPECT_FALSE(SummarizeRun(record, {.value = 0.95}).seconds_to_target.has_value());
  EXPECT_FALSE(SummarizeRun(record, {}).seconds_to_target.has_value());
}

TEST(RunSummaryTest, ThroughputIsTheEndLines) {
  RunRecord record;
  record.progress = {Progress(1, 500), Progress(2, 1200)};
  record.end.emplace();
  record.end->set_t(10);
  record.end->set_examples_per_second(640);
  record.end->set_ok(true);
  RunSummary summary = SummarizeRun(record, {});
  EXPECT_DOUBLE_EQ(summary.examples_per_second, 640);
  EXPECT_DOUBLE_EQ(summary.seconds, 10);
  EXPECT_TRUE(summary.ok);
}

TEST(RunSummaryTest, ThroughputWithoutAnEndStopsAtTheLastExample) {
  RunRecord record;
  record.progress = {Progress(1, 500), Progress(2, 1200), Progress(3, 1200)};
  EXPECT_DOUBLE_EQ(SummarizeRun(record, {}).examples_per_second, 600);
}

TEST(RunSummaryTest, StalenessComesFromTheLastHistogram) {
  RunRecord record;
  record.progress = {Progress(1, 1), Progress(2, 2)};
  for (double steps : {0, 0, 0, 0, 9}) record.progress[0].add_staleness_counts(steps);
  for (double steps : {10, 20, 0, 10, 0}) record.progress[1].add_staleness_counts(steps);
  RunSummary summary = SummarizeRun(record, {});
  EXPECT_DOUBLE_EQ(summary.staleness_mean, 50.0 / 40);
  EXPECT_EQ(summary.staleness_max, 3);
}

TEST(RunSummaryTest, WaitingShareIsOverAllWorkersTime) {
  RunRecord record;
  record.progress = {Progress(1, 1)};
  record.progress[0].set_waiting_share(0.9);
  EXPECT_DOUBLE_EQ(SummarizeRun(record, {}).waiting_share, 0.9);
  v1::WorkerTotals* busy = record.progress[0].add_workers();
  busy->set_data_seconds(1);
  busy->set_compute_seconds(2);
  busy->set_push_seconds(1);
  v1::WorkerTotals* waiting = record.progress[0].add_workers();
  waiting->set_compute_seconds(2);
  waiting->set_pull_wait_seconds(2);
  EXPECT_DOUBLE_EQ(SummarizeRun(record, {}).waiting_share, 0.25);
}

// Two epochs of 100 examples; a line is of those since the one before.
TEST(RunSummaryTest, TheGeneralizationGapIsOverTheLastEpochsExamples) {
  RunRecord record;
  double examples = 0;
  for (const auto& [added, accuracy] : {std::pair(100.0, 0.1), {75, 0.9}, {0, 0.1}, {25, 0.5}}) {
    v1::ProgressLine& line = record.progress.emplace_back();
    line.set_examples(examples += added);
    line.set_epoch(examples / 100);
    line.set_accuracy(accuracy);
    line.set_loss(1 - accuracy);
  }
  EXPECT_FALSE(SummarizeRun(record, {}).generalization_gap.has_value()) << "nothing is held out";
  v1::EvaluationLine& evaluation = record.evaluations.emplace_back();
  evaluation.set_accuracy(0.7);
  evaluation.set_loss(0.5);
  EXPECT_DOUBLE_EQ(*SummarizeRun(record, {}).generalization_gap, 0.8 - 0.7);
  record.evaluations.back().clear_accuracy();
  EXPECT_DOUBLE_EQ(*SummarizeRun(record, {}).generalization_gap, 0.5 - 0.2);
  record.progress.back().clear_loss();
  EXPECT_FALSE(SummarizeRun(record, {}).generalization_gap.has_value());
}

TEST(RunSummaryTest, ARecordWithoutAnEndIsNotOk) {
  RunSummary summary = SummarizeRun(RunRecord(), {.value = 0.9});
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
