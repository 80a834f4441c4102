#include "common/learning_rate_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rubato {
namespace {

TEST(LearningRateScheduleTest, AbsentScheduleIsConstant) {
  EXPECT_EQ(ScheduleFactor(v1::LearningRateSchedule(), 0, 0), 1);
  EXPECT_EQ(ScheduleFactor(v1::LearningRateSchedule(), 1e6, 1 << 30), 1);
}

TEST(LearningRateScheduleTest, WarmsUpLinearlyBeforeAConstant) {
  v1::LearningRateSchedule schedule;
  schedule.mutable_constant();
  schedule.set_warmup(4);
  EXPECT_EQ(ScheduleFactor(schedule, 0, 1000), 0);
  EXPECT_EQ(ScheduleFactor(schedule, 1, 1000), 0.25);
  EXPECT_EQ(ScheduleFactor(schedule, 4, 0), 1);
  EXPECT_EQ(ScheduleFactor(schedule, 100, 0), 1);
}

TEST(LearningRateScheduleTest, CountsStepsWhereAsked) {
  v1::LearningRateSchedule schedule;
  schedule.set_unit(v1::LearningRateSchedule::STEPS);
  schedule.set_warmup(100);
  EXPECT_EQ(ScheduleFactor(schedule, 50, 25), 0.25);
  EXPECT_EQ(ScheduleFactor(schedule, 0, 100), 1);
}

TEST(LearningRateScheduleTest, StepDropsAfterEachWholeInterval) {
  v1::LearningRateSchedule schedule;
  schedule.mutable_step()->set_interval(10);
  schedule.mutable_step()->set_factor(0.5);
  EXPECT_EQ(ScheduleFactor(schedule, 9.99, 0), 1);
  EXPECT_EQ(ScheduleFactor(schedule, 10, 0), 0.5);
  EXPECT_EQ(ScheduleFactor(schedule, 35, 0), 0.125);
}

TEST(LearningRateScheduleTest, CosineFallsFromOneToTheFinalFactorAndStays) {
  v1::LearningRateSchedule schedule;
  schedule.mutable_cosine()->set_length(8);
  schedule.mutable_cosine()->set_final_factor(0.2);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 0, 0), 1);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 4, 0), 0.6);
  EXPECT_NEAR(ScheduleFactor(schedule, 2, 0), 0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 8, 0), 0.2);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 80, 0), 0.2);
}

TEST(LearningRateScheduleTest, PolynomialFollowsItsPower) {
  v1::LearningRateSchedule schedule;
  schedule.mutable_polynomial()->set_length(10);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 2.5, 0), 0.75);
  schedule.mutable_polynomial()->set_power(2);
  schedule.mutable_polynomial()->set_final_factor(0.1);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 5, 0), 0.25 * 0.9 + 0.1);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 10, 0), 0.1);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 11, 0), 0.1);
}

TEST(LearningRateScheduleTest, LengthIsCountedFromTheEndOfTheWarmUp) {
  v1::LearningRateSchedule schedule;
  schedule.set_warmup(2);
  schedule.mutable_polynomial()->set_length(4);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 1, 0), 0.5);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 2, 0), 1);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 4, 0), 0.5);
  EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 6, 0), 0);
  EXPECT_TRUE(IsWarmUp(schedule, 1, 9));
  EXPECT_FALSE(IsWarmUp(schedule, 2, 0));
  schedule.set_unit(v1::LearningRateSchedule::STEPS);
  EXPECT_TRUE(IsWarmUp(schedule, 9, 1));
}

TEST(LearningRateScheduleTest, PointsBeforeTheStartCountAsTheStart) {
  v1::LearningRateSchedule schedule;
  schedule.set_warmup(2);
  EXPECT_EQ(ScheduleFactor(schedule, -1, 0), 0);
}

}  // namespace
}  // namespace rubato
