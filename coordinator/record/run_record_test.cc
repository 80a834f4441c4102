#include "coordinator/record/run_record.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace rubato::coordinator {
namespace {

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

TEST(RunRecord, AProgressLineHasTheFieldsOfTheFormat) {
  JobProgress progress;
  progress.StartInterval(kStart);
  progress.OnHeartbeat(Worker(1, 1), Progress(10, 100, 50, 80));
  v1::Plan plan;
  plan.set_generation(2);
  plan.set_mode(v1::ASYNC);
  auto line = nlohmann::json::parse(
      ProgressLine(1.5, progress.TakeInterval(kStart + absl::Seconds(2)), 0.25, plan, progress.ByWorker()));
  EXPECT_EQ(line["kind"], "progress");
  EXPECT_EQ(line["t"], 1.5);
  EXPECT_EQ(line["mode"], "ASYNC");
  EXPECT_EQ(line["examples_per_second"], 50.0);
  EXPECT_EQ(line["staleness_counts"], (std::vector<int>{10, 10}));
  ASSERT_EQ(line["workers"].size(), 1u);
  EXPECT_EQ(line["workers"][0]["index"], 1);
  EXPECT_EQ(line["workers"][0]["pull_wait_seconds"], 1.0);
}

TEST(RunRecord, AnEvaluationThatDivergedHasNullLoss) {
  v1::EvaluationResult result;
  result.set_loss(std::numeric_limits<double>::quiet_NaN());
  auto line = nlohmann::json::parse(EvaluationLine(3, 1, 10, result, true));
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_EQ(line["final"], true);
}

TEST(RunRecord, APlanLineNamesMembersAndTimes) {
  v1::Plan plan;
  plan.set_generation(2);
  plan.set_mode(v1::SSP);
  plan.set_staleness_bound(3);
  *plan.add_members() = Worker(0, 1);
  *plan.add_members() = Worker(4, 1);
  auto line = nlohmann::json::parse(
      PlanLine(5, plan, "operator", {.round_trip_seconds = 0.25, .stall_seconds = 0.5, .slowest_step_seconds = 1}));
  EXPECT_EQ(line["members"], (std::vector<int>{0, 4}));
  EXPECT_EQ(line["round_trip_seconds"], 0.25);
  EXPECT_EQ(line["stall_seconds"], 0.5);
}

TEST(RunRecord, AReasonWithOddBytesIsStillJson) {
  auto line = nlohmann::json::parse(MemberLine(9, Worker(1, 1), "evicted", "say \"no\" \xff\n"));
  EXPECT_EQ(line["task"], "worker 1");
  EXPECT_EQ(line["event"], "evicted");
}

TEST(RunRecord, TheEndLineHasTheRateOfTheTrainingAlone) {
  ProgressTotals totals;
  totals.examples = 1000;
  auto line = nlohmann::json::parse(EndLine(30, "", totals, 20));
  EXPECT_EQ(line["ok"], true);
  EXPECT_EQ(line["examples_per_second"], 50.0);
}

}  // namespace
}  // namespace rubato::coordinator
