#include "cli/report/quantities.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Names(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const Quantity& quantity : QuantitiesOf(comparison)) names.push_back(quantity.name);
  return names;
}

Comparison Of(const RunSummary& summary) {
  ComparedRun run;
  run.summary = summary;
  Comparison comparison;
  comparison.modes = {{"sync", {run}}};
  return comparison;
}

TEST(QuantitiesTest, AccuracyComesBeforeLossAndExamplesBeforeSteps) {
  RunSummary summary;
  summary.training_loss = 0.3;
  summary.steps_per_second = 5;
  EXPECT_THAT(Names(Of(summary)), ElementsAre("training_loss", "steps_per_second"));
  summary.final_loss = 0.2;
  summary.examples_per_second = 320;
  EXPECT_THAT(Names(Of(summary)), ElementsAre("final_loss", "examples_per_second"));
  summary.final_accuracy = 0.9;
  EXPECT_THAT(Names(Of(summary)), ElementsAre("final_accuracy", "examples_per_second"));
}

TEST(QuantitiesTest, TheTargetsMetricComesFirst) {
  RunSummary summary;
  summary.final_loss = 0.5;
  summary.final_accuracy = 0.9;
  summary.final_auc = 0.8;
  EXPECT_THAT(Names(Of(summary)), ElementsAre("final_auc"));
  Comparison comparison = Of(summary);
  comparison.target = {.metric = Metric::kAccuracy, .value = 0.95};
  EXPECT_THAT(Names(comparison), ElementsAre("final_accuracy"));
  summary = {};
  summary.final_r2 = 0.25;
  summary.final_rmse = 1.5;
  EXPECT_THAT(Names(Of(summary)), ElementsAre("final_r2"));
  comparison = Of(summary);
  comparison.target = {.metric = Metric::kRmse, .value = 1};
  const std::vector<Quantity> quantities = QuantitiesOf(comparison);
  ASSERT_EQ(quantities.size(), 1u);
  EXPECT_EQ(quantities[0].label, "RMSE");
  EXPECT_EQ(quantities[0].value(summary), 1.5);
}

TEST(QuantitiesTest, EffortsNeedATargetAndRunsThatTell) {
  RunSummary summary;
  summary.seconds = 10;
  summary.samples = 1000;
  EXPECT_THAT(Names(Of(summary)), IsEmpty());
  Comparison comparison = Of(summary);
  comparison.target = {.value = 0.9};
  EXPECT_THAT(Names(comparison), ElementsAre("seconds_to_target", "samples_to_target"));
}

}  // namespace
}  // namespace rubato
