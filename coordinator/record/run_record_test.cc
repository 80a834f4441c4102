#include "coordinator/record/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace rubato::coordinator {
namespace {

using testing::ElementsAre;

v1::TaskId Worker(uint32_t index, uint64_t incarnation) {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}

v1::WorkerProgress Progress(int64_t steps, int64_t examples, double loss, double correct) {
  v1::WorkerProgress progress;
  progress.set_step(steps);
  progress.set_steps_total(steps);
  progress.set_examples_total(examples);
  progress.set_loss_total(loss);
  progress.set_correct_total(correct);
  progress.set_compute_seconds_total(3);
  progress.set_pull_wait_seconds_total(1);
  progress.add_staleness_counts(steps);
  progress.add_staleness_counts(steps);
  return progress;
}

const absl::Time kStart = absl::UnixEpoch();

TEST(JobProgress, AddsWorkersAndTheirFormerIncarnationsUp) {
  JobProgress progress;
  progress.OnHeartbeat(Worker(0, 1), Progress(10, 100, 50, 80));
  progress.OnHeartbeat(Worker(0, 2), Progress(4, 40, 10, 30));
  progress.OnHeartbeat(Worker(1, 3), Progress(12, 120, 60, 90));
  ProgressTotals totals = progress.Totals();
  EXPECT_EQ(totals.examples, 260);
  EXPECT_EQ(totals.step, 12);
  EXPECT_EQ(totals.staleness_counts, (std::vector<int64_t>{26, 26}));
  EXPECT_DOUBLE_EQ(totals.StalenessMean(), 0.5);
  EXPECT_DOUBLE_EQ(totals.WaitingShare(), 0.25);
  EXPECT_EQ(progress.ByWorker()[0].examples_total(), 140);
}

TEST(JobProgress, AnOlderHeartbeatThatComesLateIsIgnored) {
  JobProgress progress;
  progress.OnHeartbeat(Worker(0, 1), Progress(10, 100, 50, 80));
  progress.OnHeartbeat(Worker(0, 1), Progress(9, 90, 45, 70));
  EXPECT_EQ(progress.Totals().examples, 100);
}

TEST(JobProgress, AnIntervalsMeansAreOverItsOwnExamples) {
  JobProgress progress;
  progress.StartInterval(kStart);
  progress.OnHeartbeat(Worker(0, 1), Progress(10, 100, 50, 80));
  JobProgress::Interval first = progress.TakeInterval(kStart + absl::Seconds(1));
  EXPECT_DOUBLE_EQ(first.loss, 0.5);
  progress.OnHeartbeat(Worker(0, 1), Progress(20, 300, 90, 260));
  JobProgress::Interval second = progress.TakeInterval(kStart + absl::Seconds(3));
  EXPECT_DOUBLE_EQ(second.loss, 0.2);
  EXPECT_DOUBLE_EQ(second.accuracy, 0.9);
  EXPECT_DOUBLE_EQ(second.examples_per_second, 100);
  EXPECT_DOUBLE_EQ(progress.ExamplesPerSecond(), 100);
  JobProgress::Interval idle = progress.TakeInterval(kStart + absl::Seconds(4));
  EXPECT_DOUBLE_EQ(idle.loss, 0.2);
  EXPECT_DOUBLE_EQ(idle.examples_per_second, 0);
}

v1::JobConfig Job(v1::ModelConfig::Loss loss) {
  v1::JobConfig config;
  config.mutable_model()->set_loss(loss);
  return config;
}

TEST(RunRecord, AProgressLineHasTotalsAndMeans) {
  JobProgress progress;
  progress.StartInterval(kStart);
  progress.OnHeartbeat(Worker(1, 1), Progress(10, 100, 50, 80));
  v1::Plan plan;
  plan.set_generation(2);
  plan.set_mode(v1::ASYNC);
  JobProgress::Interval interval = progress.TakeInterval(kStart + absl::Seconds(2));
  interval.gradient_noise.set_norm(0.5);
  const v1::ProgressLine line =
      ProgressLine(1.5, Job(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY), interval, 0.25, plan, progress.ByWorker())
          .progress();
  EXPECT_EQ(line.t(), 1.5);
  EXPECT_EQ(line.mode(), v1::ASYNC);
  EXPECT_EQ(line.loss(), 0.5);
  EXPECT_EQ(line.accuracy(), 0.8);
  EXPECT_EQ(line.examples_per_second(), 50);
  EXPECT_EQ(line.gradient_norm(), 0.5);
  EXPECT_FALSE(line.has_gradient_noise_scale());
  EXPECT_THAT(line.staleness_counts(), ElementsAre(10, 10));
  ASSERT_EQ(line.workers_size(), 1);
  EXPECT_EQ(line.workers(0).index(), 1u);
  EXPECT_EQ(line.workers(0).pull_wait_seconds(), 1);
  EXPECT_EQ(line.workers(0).staleness_mean(), 0.5);
  EXPECT_FALSE(line.workers(0).has_loss_scale());
}

TEST(RunRecord, BeforeTheFirstExampleThereIsNoLoss) {
  const v1::ProgressLine line =
      ProgressLine(1, Job(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY), {}, 0, v1::Plan(), {}).progress();
  EXPECT_FALSE(line.has_loss());
  EXPECT_FALSE(line.diverged());
  EXPECT_FALSE(line.has_accuracy());
}

TEST(RunRecord, OfClientsThereIsAnAccuracyIfTheyTell) {
  v1::JobConfig config;
  config.mutable_model()->mutable_manifest();
  JobProgress::Interval interval;
  interval.totals.examples = 10;
  interval.accuracy = 0.8;
  EXPECT_FALSE(ProgressLine(1, config, interval, 0, v1::Plan(), {}).progress().has_accuracy());
  interval.totals.correct = 8;
  EXPECT_EQ(ProgressLine(1, config, interval, 0, v1::Plan(), {}).progress().accuracy(), 0.8);
}

TEST(RunRecord, ARegressionHasR2AndNoAccuracyOfZero) {
  JobProgress::Interval interval;
  interval.totals.examples = 10;
  interval.loss = 0.5;
  const v1::ProgressLine progress =
      ProgressLine(1, Job(v1::ModelConfig::MEAN_SQUARED_ERROR), interval, 0, v1::Plan(), {}).progress();
  EXPECT_EQ(progress.loss(), 0.5);
  EXPECT_FALSE(progress.has_accuracy());
  v1::EvaluationResult result;
  result.set_loss(0.25);
  result.set_r2(0.75);
  const v1::EvaluationLine evaluation = EvaluationLine(3, 1, 10, result, true).evaluation();
  EXPECT_EQ(evaluation.loss(), 0.25);
  EXPECT_EQ(evaluation.r2(), 0.75);
  EXPECT_FALSE(evaluation.has_accuracy());
}

TEST(RunRecord, ABinaryClassifierHasAucAndCalibration) {
  JobProgress::Interval interval;
  interval.totals.examples = 10;
  interval.accuracy = 0.8;
  EXPECT_EQ(
      ProgressLine(1, Job(v1::ModelConfig::BINARY_CROSS_ENTROPY), interval, 0, v1::Plan(), {}).progress().accuracy(),
      0.8);
  v1::EvaluationResult result;
  EXPECT_FALSE(EvaluationLine(3, 1, 10, result, true).evaluation().has_calibration());
  result.set_auc(0.75);
  result.set_calibration(1.25);
  const v1::EvaluationLine evaluation = EvaluationLine(3, 1, 10, result, true).evaluation();
  EXPECT_EQ(evaluation.auc(), 0.75);
  EXPECT_FALSE(evaluation.has_recall());
  result.set_recall(0.5);
  EXPECT_EQ(EvaluationLine(3, 1, 10, result, true).evaluation().recall(), 0.5);
  EXPECT_EQ(evaluation.calibration(), 1.25);
}

TEST(RunRecord, AnEvaluationThatDivergedHasNoLossAndSaysSo) {
  v1::EvaluationResult result;
  result.set_loss(std::numeric_limits<double>::quiet_NaN());
  result.set_accuracy(0.1);
  const v1::EvaluationLine line = EvaluationLine(3, 1, 10, result, true).evaluation();
  EXPECT_FALSE(line.has_loss());
  EXPECT_TRUE(line.diverged());
  EXPECT_EQ(line.accuracy(), 0.1);
  EXPECT_TRUE(line.final());
}

TEST(RunRecord, APlanLineNamesMembersAndTimes) {
  v1::Plan plan;
  plan.set_generation(2);
  plan.set_mode(v1::SSP);
  plan.set_staleness_bound(3);
  *plan.add_members() = Worker(0, 1);
  *plan.add_members() = Worker(4, 1);
  plan.set_learning_rate_scale(0.5);
  for (uint32_t index : {0u, 2u, 4u}) plan.add_decided_members(index);  // Worker 2 was lost since.
  for (uint32_t size : {10u, 20u, 30u}) plan.add_batch_sizes(size);
  const v1::PlanLine line =
      PlanLine(5, plan, "operator", {.round_trip_seconds = 0.25, .stall_seconds = 0.5, .slowest_step_seconds = 1})
          .plan();
  EXPECT_THAT(line.members(), ElementsAre(0, 4));
  EXPECT_THAT(line.batch_sizes(), ElementsAre(10, 30));
  EXPECT_EQ(line.quorum(), 0);
  EXPECT_EQ(line.learning_rate_scale(), 0.5);
  EXPECT_FALSE(line.has_sync_every());
  plan.set_sync_every(16);
  EXPECT_EQ(PlanLine(5, plan, "operator", {}).plan().sync_every(), 16);
  EXPECT_FALSE(line.has_uncompressed());
  plan.set_uncompressed(true);
  EXPECT_TRUE(PlanLine(5, plan, "operator", {}).plan().uncompressed());
  EXPECT_FALSE(line.has_momentum());
  plan.set_momentum(0.5);
  EXPECT_EQ(PlanLine(5, plan, "operator", {}).plan().momentum(), 0.5);
  EXPECT_EQ(line.round_trip_seconds(), 0.25);
  EXPECT_EQ(line.stall_seconds(), 0.5);
}

TEST(RunRecord, ARequestHasWhoMadeItAndWhyItWasRefused) {
  const v1::RequestLine line = RequestLine(3, "checkpoint", "operator at 127.0.0.1", "it is STARTING").request();
  EXPECT_EQ(line.t(), 3);
  EXPECT_EQ(line.request(), "checkpoint");
  EXPECT_EQ(line.by(), "operator at 127.0.0.1");
  EXPECT_EQ(line.refused(), "it is STARTING");
}

TEST(RunRecord, TheEndLineHasTheRateOfTheTrainingAlone) {
  ProgressTotals totals;
  totals.examples = 1000;
  const v1::EndLine line = EndLine(30, "", totals, 20).end();
  EXPECT_TRUE(line.ok());
  EXPECT_EQ(line.examples_per_second(), 50);
}

}  // namespace
}  // namespace rubato::coordinator
