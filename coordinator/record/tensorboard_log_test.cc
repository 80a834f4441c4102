#include "coordinator/record/tensorboard_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "coordinator/record/run_record.h"

namespace rubato::coordinator {
namespace {

using testing::HasSubstr;

std::map<std::string, float> Scalars(const tensorflow::Event& event) {
  std::map<std::string, float> scalars;
  for (const auto& value : event.summary().value()) {
    if (value.value_case() == tensorflow::Summary::Value::kSimpleValue) scalars[value.tag()] = value.simple_value();
  }
  return scalars;
}

std::string TextOf(const tensorflow::Event& event) {
  for (const auto& value : event.summary().value()) {
    if (value.metadata().plugin_data().plugin_name() == "text") return value.tensor().string_val(0);
  }
  return "";
}

TEST(TensorboardLogTest, ProgressBecomesScalarsOfItsStep) {
  JobProgress::Interval interval;
  interval.totals.step = 120;
  interval.totals.examples = 960;
  interval.totals.learning_rate = 0.05;
  interval.loss = 0.5;
  interval.accuracy = 0.75;
  interval.examples_per_second = 1000;
  interval.gradient_noise.set_norm(0.5);
  interval.gradient_noise.set_scale_examples(300);
  v1::JobConfig config;
  config.mutable_model()->set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
  v1::Plan plan;
  plan.set_generation(3);
  const tensorflow::Event event = EventOfLine(ProgressLine(1.5, config, interval, 0.25, plan, {}), 0);
  EXPECT_EQ(event.step(), 120);
  std::map<std::string, float> scalars = Scalars(event);
  EXPECT_EQ(scalars["training/loss"], 0.5f);
  EXPECT_EQ(scalars["training/accuracy"], 0.75f);
  EXPECT_EQ(scalars["training/learning_rate"], 0.05f);
  EXPECT_EQ(scalars["training/examples_per_second"], 1000.0f);
  EXPECT_EQ(scalars["training/gradient_norm"], 0.5f);
  EXPECT_EQ(scalars["training/gradient_noise_scale"], 300.0f);
  EXPECT_EQ(scalars["consistency/generation"], 3.0f);
  EXPECT_TRUE(scalars.contains("consistency/staleness_mean"));
  EXPECT_TRUE(scalars.contains("consistency/waiting_share"));
}

TEST(TensorboardLogTest, ADivergedLossIsNotANumber) {
  v1::EvaluationResult result;
  result.set_loss(std::nan(""));
  result.set_accuracy(0.1);
  const tensorflow::Event event = EventOfLine(EvaluationLine(2, 1, 40, result, false), 0);
  EXPECT_EQ(event.step(), 40);
  EXPECT_TRUE(std::isnan(Scalars(event)["evaluation/loss"]));
  EXPECT_EQ(Scalars(event)["evaluation/accuracy"], 0.1f);
}

TEST(TensorboardLogTest, PlansAndMembersBecomeText) {
  v1::Plan plan;
  plan.set_generation(2);
  plan.set_mode(v1::SSP);
  plan.set_staleness_bound(4);
  plan.set_first_step(500);
  plan.add_members()->set_index(1);
  const tensorflow::Event event = EventOfLine(PlanLine(5, plan, "operator", {.stall_seconds = 0.25}), 7);
  EXPECT_EQ(event.step(), 500);
  EXPECT_EQ(TextOf(event), "plan 2: **SSP(4)** from step 500; members: 1; operator; longest stall 0.25 s");
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  const tensorflow::Event member = EventOfLine(MemberLine(6, task, v1::MemberLine::EVICTED, "no heartbeat"), 7);
  EXPECT_EQ(member.step(), 7);
  EXPECT_EQ(TextOf(member), "worker 0 evicted: no heartbeat");
  EXPECT_EQ(TextOf(EventOfLine(EndLine(7, "lost", {}, 1), 7)), "failed: lost");
}

TEST(TensorboardLogTest, CheckpointsAndRollbacksBecomeText) {
  v1::RunRecordLine line;
  line.mutable_checkpoint()->set_step(150);
  line.mutable_checkpoint()->set_name("step150");
  line.mutable_checkpoint()->set_bytes(2.5e6);
  line.mutable_checkpoint()->set_seconds(0.5);
  const tensorflow::Event checkpoint = EventOfLine(line, 160);
  EXPECT_EQ(checkpoint.step(), 150);
  EXPECT_EQ(TextOf(checkpoint), "**step150**: 2.5 MB in 0.5 s");
  line.mutable_rollback()->set_step(150);
  line.mutable_rollback()->set_term(2);
  line.mutable_rollback()->set_reason("server 1 was lost");
  const tensorflow::Event rollback = EventOfLine(line, 200);
  EXPECT_EQ(rollback.step(), 150);
  EXPECT_EQ(TextOf(rollback), "back to step 150 in term 2: server 1 was lost");
}

TEST(TensorboardLogTest, ARegressionHasR2AndNoAccuracyOfZero) {
  v1::EvaluationResult result;
  result.set_loss(0.25);
  result.set_r2(0.75);
  std::map<std::string, float> scalars = Scalars(EventOfLine(EvaluationLine(2, 1, 40, result, false), 0));
  EXPECT_EQ(scalars["evaluation/loss"], 0.25f);
  EXPECT_EQ(scalars["evaluation/r2"], 0.75f);
  EXPECT_FALSE(scalars.contains("evaluation/accuracy"));
}

TEST(TensorboardLogTest, ABinaryClassifierHasAucAndCalibration) {
  v1::EvaluationResult result;
  EXPECT_FALSE(Scalars(EventOfLine(EvaluationLine(2, 1, 40, result, false), 0)).contains("evaluation/recall"));
  result.set_recall(0.5);
  result.set_auc(0.75);
  result.set_calibration(1.25);
  std::map<std::string, float> scalars = Scalars(EventOfLine(EvaluationLine(2, 1, 40, result, false), 0));
  EXPECT_EQ(scalars["evaluation/auc"], 0.75f);
  EXPECT_EQ(scalars["evaluation/calibration"], 1.25f);
  EXPECT_EQ(scalars["evaluation/recall"], 0.5f);
}

TEST(TensorboardLogTest, ALineWithoutAKindShowsNothing) {
  EXPECT_FALSE(EventOfLine(v1::RunRecordLine(), 0).has_summary());
}

TEST(TensorboardLogTest, TensorsBecomeNormsAndHistograms) {
  v1::TensorReport report;
  report.set_step(9);
  v1::TensorStatistics* tensor = report.add_tensors();
  tensor->set_tensor("fc.weight");
  tensor->set_kind(v1::TensorStatistics::GRADIENT);
  tensor->set_elements(6);
  tensor->set_non_finite(1);
  tensor->set_min(-1);
  tensor->set_max(3);
  tensor->set_sum_squares(16);
  for (int count : {1, 4}) tensor->add_counts(count);
  *report.add_tensors() = *tensor;
  report.mutable_tensors(1)->set_min(5);  // Over its max.
  const tensorflow::Event event = EventOfTensors(report);
  ASSERT_EQ(event.summary().value_size(), 2);
  EXPECT_EQ(Scalars(event)["gradients/fc.weight/norm"], 4.0f);
  const tensorflow::Summary::Value& value = event.summary().value(1);
  EXPECT_EQ(value.tag(), "gradients/fc.weight");
  EXPECT_THAT(value.histo().bucket_limit(), testing::ElementsAre(1, 3));
  EXPECT_THAT(value.histo().bucket(), testing::ElementsAre(1, 4));
  EXPECT_EQ(value.histo().num(), 5);
}

TEST(TensorboardLogTest, WritesIntoTheRunDirectory) {
  v1::JobConfig config;
  config.set_name("job");
  config.set_run_directory(testing::TempDir() + "/tensorboard-run");
  std::filesystem::remove_all(config.run_directory());
  auto log = TensorboardLog::Open(config, absl::UnixEpoch());
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->OnLine(absl::UnixEpoch(), EndLine(1, "", {}, 1)).ok());
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(config.run_directory() + "/tensorboard")) {
    ++files;
    EXPECT_THAT(file.path().filename().string(), HasSubstr("tfevents"));
  }
  EXPECT_EQ(files, 1);
}

}  // namespace
}  // namespace rubato::coordinator
