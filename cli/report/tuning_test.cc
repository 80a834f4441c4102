#include "cli/report/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato {
namespace {

using ::testing::ElementsAre;

TuningRun Tried(double rate, std::optional<double> seconds_to_target, std::optional<double> accuracy, bool ok = true) {
  TuningRun run = {.learning_rate = rate};
  run.summary.ok = ok;
  run.summary.seconds_to_target = seconds_to_target;
  run.summary.final_accuracy = accuracy;
  return run;
}

TEST(TuningTest, TriesAsManyRatesAboveAsBelow) { EXPECT_THAT(RatesToTry(0.5), ElementsAre(0.125, 0.25, 0.5, 1, 2)); }

TEST(TuningTest, TheFirstAtTheTargetIsTheBest) {
  EXPECT_EQ(BestOf({Tried(1, 9, 0.91), Tried(2, 5, 0.9), Tried(3, std::nullopt, 0.95)}, {}), 1u);
}

TEST(TuningTest, WithoutATargetTheMostAccurateIs) {
  EXPECT_EQ(BestOf({Tried(1, {}, 0.8), Tried(2, {}, 0.9), Tried(3, {}, 0.85)}, {}), 1u);
}

TEST(TuningTest, WithoutAnAccuracyTheLowestLossIs) {
  std::vector<TuningRun> runs = {Tried(1, {}, {}), Tried(2, {}, {}), Tried(3, {}, {}), Tried(4, {}, {})};
  runs[0].summary.final_loss = NAN;
  runs[1].summary.final_loss = 0.5;
  runs[2].summary.final_loss = 0.25;
  EXPECT_EQ(BestOf(runs, {}), 2u);
}

TEST(TuningTest, TheTargetsMetricSaysWhichIsTheBest) {
  std::vector<TuningRun> runs = {Tried(1, {}, 0.9), Tried(2, {}, 0.8)};
  runs[0].summary.final_auc = 0.6;
  runs[1].summary.final_auc = 0.7;
  EXPECT_EQ(BestOf(runs, {}), 1u);
  EXPECT_EQ(BestOf(runs, {.metric = Metric::kAccuracy, .value = 0.99}), 0u);
  runs[0].summary.final_rmse = 1.25;
  runs[1].summary.final_rmse = 1.5;
  EXPECT_EQ(BestOf(runs, {.metric = Metric::kRmse, .value = 1}), 0u);
}

TEST(TuningTest, AFailedRunIsNeverTheBest) {
  EXPECT_EQ(BestOf({Tried(1, 1, 0.99, /*ok=*/false), Tried(2, {}, 0.1)}, {}), 1u);
  EXPECT_EQ(BestOf({Tried(1, 1, 0.99, /*ok=*/false)}, {}), std::nullopt);
}

TEST(TuningTest, SaysWhenTheBestIsAtTheEdge) {
  Tuning tuning = {"async", {Tried(0.1, 3, 0.9), Tried(0.2, 2, 0.9), Tried(0.4, 4, 0.9)}, 1};
  EXPECT_EQ(TuningText(tuning), "async: learning rate 0.2 of 0.1, 0.2, 0.4");
  tuning.best = 2;
  EXPECT_EQ(TuningText(tuning),
            "async: learning rate 0.4 of 0.1, 0.2, 0.4; it is at the edge, so a better one may be beyond");
  tuning.best.reset();
  EXPECT_EQ(TuningText(tuning), "async: no run with a learning rate of 0.1, 0.2, 0.4 ended well");
}

}  // namespace
}  // namespace rubato
