#include "common/metrics/step_count.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(CountStepTest, WorkIsTheStepWithoutItsWait) {
  v1::WorkerProgress progress;
  CountStep(0.5, 0.375, 32, &progress);
  CountStep(0.25, 0, 16, &progress);
  EXPECT_EQ(progress.steps_total(), 2);
  EXPECT_EQ(progress.step_seconds_total(), 0.75);
  ASSERT_EQ(progress.work_seconds_size(), 2);
  EXPECT_EQ(progress.work_seconds(0), 0.125);
  EXPECT_EQ(progress.work_seconds(1), 0.25);
  EXPECT_EQ(WorkRate(progress), 128);
}

TEST(CountStepTest, TheLatestStepsAreKept) {
  v1::WorkerProgress progress;
  for (int step = 0; step < kRecentSteps + 3; ++step) CountStep(step, 0, step, &progress);
  ASSERT_EQ(progress.work_seconds_size(), kRecentSteps);
  EXPECT_EQ(progress.work_seconds(0), 3);
  EXPECT_EQ(progress.work_seconds(kRecentSteps - 1), kRecentSteps + 2);
  ASSERT_EQ(progress.work_examples_size(), kRecentSteps);
  EXPECT_EQ(progress.work_examples(0), 3);
  EXPECT_EQ(WorkRate(progress), 1);
}

// Two clocks may disagree by a little.
TEST(CountStepTest, NoWorkIsNegative) {
  v1::WorkerProgress progress;
  CountStep(0.5, 0.75, 32, &progress);
  EXPECT_EQ(progress.work_seconds(0), 0);
  EXPECT_EQ(WorkRate(progress), 0);
}

TEST(WorkQuantileTest, IsAStepThatWasMade) {
  v1::WorkerProgress progress;
  EXPECT_EQ(WorkQuantile(progress, 0.5), 0);
  for (double seconds : {4, 1, 3, 2}) CountStep(seconds, 0, 1, &progress);
  EXPECT_EQ(WorkQuantile(progress, 0.5), 2);
  EXPECT_EQ(WorkQuantile(progress, 0.9), 4);
  EXPECT_EQ(WorkQuantile(progress, 1), 4);
  EXPECT_EQ(WorkQuantile(progress, 0.01), 1);
}

}  // namespace
}  // namespace rubato
