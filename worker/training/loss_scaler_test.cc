#include "worker/training/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rubato::worker {
namespace {

LossScaler Scaler(double initial, int64_t growth_steps) {
  v1::LossScaleConfig config;
  config.set_initial(initial);
  config.set_growth_steps(growth_steps);
  return LossScaler(config);
}

TEST(LossScalerTest, HalvesOnOverflow) {
  LossScaler scaler = Scaler(1024, 3);
  EXPECT_TRUE(scaler.OnOverflow());
  EXPECT_TRUE(scaler.OnOverflow());
  EXPECT_EQ(scaler.scale(), 256);
  EXPECT_EQ(scaler.overflows(), 2);
}

TEST(LossScalerTest, DoublesAfterSomeStepsWithoutOverflow) {
  LossScaler scaler = Scaler(8, 3);
  EXPECT_FALSE(scaler.OnFinite());
  EXPECT_FALSE(scaler.OnFinite());
  EXPECT_EQ(scaler.scale(), 8);
  EXPECT_TRUE(scaler.OnFinite());
  EXPECT_EQ(scaler.scale(), 16);
  // And again after as many.
  EXPECT_FALSE(scaler.OnFinite());
  EXPECT_FALSE(scaler.OnFinite());
  EXPECT_TRUE(scaler.OnFinite());
  EXPECT_EQ(scaler.scale(), 32);
}

TEST(LossScalerTest, AnOverflowStartsTheCountAgain) {
  LossScaler scaler = Scaler(8, 2);
  scaler.OnFinite();
  scaler.OnOverflow();
  EXPECT_FALSE(scaler.OnFinite());
  EXPECT_EQ(scaler.scale(), 4);
  EXPECT_TRUE(scaler.OnFinite());
  EXPECT_EQ(scaler.scale(), 8);
}

TEST(LossScalerTest, WhatIsNotFiniteWithoutScalingIsNoOverflow) {
  LossScaler scaler = Scaler(2, 2);
  EXPECT_TRUE(scaler.OnOverflow());
  EXPECT_FALSE(scaler.OnOverflow());
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_EQ(scaler.overflows(), 1);
}

TEST(LossScalerTest, StopsAtTheLargestScale) {
  LossScaler scaler = Scaler(0x1p23, 1);
  EXPECT_TRUE(scaler.OnFinite());
  EXPECT_FALSE(scaler.OnFinite());
  EXPECT_EQ(scaler.scale(), LossScaler::kMaxScale);
}

TEST(LossScalerTest, GoesOnFromWhatAnEarlierOneHasKept) {
  LossScaler first = Scaler(1024, 3);
  first.OnOverflow();
  first.OnFinite();
  first.OnFinite();
  LossScaler second = Scaler(1024, 3);
  ASSERT_TRUE(second.Restore(first.state()).ok());
  EXPECT_EQ(second.scale(), 512);
  EXPECT_TRUE(second.OnFinite());
  EXPECT_EQ(second.scale(), 1024);
}

TEST(LossScalerTest, RefusesWhatIsNoScale) {
  LossScaler scaler = Scaler(1024, 3);
  for (double scale : {0.0, 0.5, 3.0, -4.0, double{0x1p25}, std::nan("")}) {
    v1::WorkerState state;
    state.set_loss_scale(scale);
    EXPECT_EQ(scaler.Restore(state).code(), absl::StatusCode::kDataLoss) << scale;
  }
  v1::WorkerState state;
  state.set_loss_scale(4);
  state.set_loss_scale_steps(-1);
  EXPECT_EQ(scaler.Restore(state).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(scaler.scale(), 1024);
}

}  // namespace
}  // namespace rubato::worker
