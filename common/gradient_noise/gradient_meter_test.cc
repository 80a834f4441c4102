#include "common/gradient_noise/gradient_meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "common/random.h"

namespace rubato {
namespace {

std::vector<int64_t> MeasuredSteps(int64_t steps, int64_t batches) {
  std::vector<int64_t> measured;
  for (int64_t step = 0; step < steps; ++step) {
    if (IsMeasuredStep(step, batches)) measured.push_back(step);
  }
  return measured;
}

TEST(GradientMeterTest, EveryEighthBatchIsMeasured) {
  EXPECT_EQ(MeasuredSteps(20, 1), (std::vector<int64_t>{0, 8, 16}));
  EXPECT_EQ(MeasuredSteps(5, 4), (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(MeasuredSteps(6, 3), (std::vector<int64_t>{0, 2, 5})) << "batches 0, 8 and 16";
  EXPECT_EQ(MeasuredSteps(3, 16), (std::vector<int64_t>{0, 1, 2}));
}

// A job of workers whose gradients differ by chance, and for good, in each of kDimensions elements of each chunk.
class GradientMeterJobTest : public testing::Test {
 protected:
  static constexpr int kDimensions = 64;
  static constexpr uint32_t kChunks = 3;

  void Update(uint32_t chunk, uint64_t generation = 1) {
    MeasuredUpdate update = {.chunk = chunk, .generation = generation};
    // In dimensions of their own.
    std::vector<std::vector<float>> gradients(examples_.size(), std::vector<float>(chunk * kDimensions));
    double all = 0;
    for (uint64_t examples : examples_) all += static_cast<double>(examples);
    for (int i = 0; i < kDimensions; ++i) {
      double mean = 0;
      for (size_t worker = 0; worker < examples_.size(); ++worker) {
        const auto examples = static_cast<double>(examples_[worker]);
        double& chance = chance_[{worker, chunk, i}];
        chance = remembered_ * chance + deviation_ * random_.Normal() / std::sqrt(examples);
        const double own = mean_ + Own(worker, chunk, i) + chance;
        gradients[worker].push_back(static_cast<float>(own));
        mean += own * examples / all;
      }
      update.mean_square += mean * mean;
    }
    for (size_t worker = 0; worker < examples_.size(); ++worker) {
      MeasuredUpdate::Gradient gradient = {.worker = static_cast<uint32_t>(worker), .examples = examples_[worker]};
      for (float value : gradients[worker]) gradient.square += static_cast<double>(value) * static_cast<double>(value);
      gradient.sketch = gradients[worker];
      update.gradients.push_back(gradient);
    }
    meter_.Add(update);
  }
  void Steps(int count, uint64_t generation = 1) {
    for (int step = 0; step < count; ++step) {
      for (uint32_t chunk = 0; chunk < kChunks; ++chunk) Update(chunk, generation);
    }
  }
  // Of the worker's gradients, always the same.
  double Own(size_t worker, uint32_t chunk, int i) const {
    return own_deviation_ * Random(5, StreamId("own", worker, chunk * kDimensions + i)).Normal();
  }
  double LastingShare() const { return meter_.moments().lasting_spread() / meter_.moments().spread(); }

  std::vector<uint64_t> examples_ = {16, 16, 16, 16};
  double mean_ = 0.5;
  double deviation_ = 2;
  double own_deviation_ = 0;
  // What is left of chance in the next measured step.
  double remembered_ = 0;
  std::map<std::tuple<size_t, uint32_t, int>, double> chance_;
  Random random_{7};
  GradientMeter meter_{kChunks};
};

TEST_F(GradientMeterJobTest, SignalAndVarianceHaveNoBias) {
  for (const std::vector<uint64_t>& examples :
       {std::vector<uint64_t>{16, 16}, std::vector<uint64_t>{8, 32}, std::vector<uint64_t>{16, 16, 16, 16, 1}}) {
    examples_ = examples;
    meter_ = GradientMeter(kChunks);
    Steps(1000);
    const v1::GradientMoments& moments = meter_.moments();
    EXPECT_EQ(moments.updates(), 1000 * kChunks);
    EXPECT_NEAR(moments.signal() / 1000 / (kChunks * kDimensions * mean_ * mean_), 1, 0.05) << examples.size();
    EXPECT_NEAR(moments.variance() / 1000 / (kChunks * kDimensions * deviation_ * deviation_), 1, 0.05);
  }
}

TEST_F(GradientMeterJobTest, OfDifferencesByChanceNothingLasts) {
  Steps(800);
  EXPECT_NEAR(LastingShare(), 0, 0.01);
}

TEST_F(GradientMeterJobTest, WhatAVelocityRemembersDoesNotLast) {
  remembered_ = 0.43;  // Of a momentum of 0.9 eight batches before.
  Steps(1600);
  EXPECT_NEAR(LastingShare(), 0, 0.01);
}

TEST_F(GradientMeterJobTest, MeasuresWhatLasts) {
  // As much as chance in a batch of 16.
  own_deviation_ = 0.5;
  Steps(800);
  EXPECT_NEAR(LastingShare(), 0.5, 0.08);
  deviation_ = 0;
  meter_ = GradientMeter(kChunks);
  Steps(12);
  EXPECT_NEAR(LastingShare(), 1, 0.01) << "the first three blocks say so";
}

TEST_F(GradientMeterJobTest, NeedsThreeBlocks) {
  own_deviation_ = 1;
  Steps(11);
  Update(0);
  Update(1);
  EXPECT_EQ(meter_.moments().spread(), 0);
  Update(2);
  EXPECT_GT(meter_.moments().spread(), 0);
}

TEST_F(GradientMeterJobTest, ChunksMayBeAheadOfEachOther) {
  own_deviation_ = 1;
  deviation_ = 0.1;
  for (int step = 0; step < 3; ++step) Update(1);
  for (int step = 0; step < 30; ++step) {
    Update(1);
    Update(0);
    Update(2);
  }
  EXPECT_NEAR(LastingShare(), 1, 0.1);
}

TEST_F(GradientMeterJobTest, ComparesNothingAcrossPlansAndOtherMembers) {
  own_deviation_ = 1;
  Steps(11, 1);
  Steps(11, 2);
  Steps(1, 1);
  EXPECT_EQ(meter_.moments().spread(), 0);
  meter_ = GradientMeter(kChunks);
  Steps(8);
  examples_ = {16, 16, 16};
  Steps(8);
  EXPECT_EQ(meter_.moments().spread(), 0) << "three members after four";
  Steps(2);
  examples_ = {16, 16, 16, 16};
  Steps(10);
  EXPECT_EQ(meter_.moments().spread(), 0) << "one of them was not in the whole of a block";
  Steps(4);
  EXPECT_GT(meter_.moments().spread(), 0);
}

TEST_F(GradientMeterJobTest, WhatIsNotFiniteCountsForNothing) {
  const float value = std::numeric_limits<float>::infinity();
  const MeasuredUpdate::Gradient bad = {.examples = 4, .square = value, .sketch = {&value, 1}};
  meter_.Add({.chunk = 0, .generation = 1, .mean_square = 9, .gradients = {bad, bad}});
  EXPECT_EQ(meter_.moments().updates(), 0);
}

TEST(GradientMeterTest, EqualGradientsHaveNoNoise) {
  GradientMeter meter(1);
  const MeasuredUpdate::Gradient gradient = {.examples = 4, .square = 9};
  meter.Add({.chunk = 0, .generation = 1, .mean_square = 9, .gradients = {gradient, gradient}});
  EXPECT_EQ(meter.moments().updates(), 1);
  EXPECT_EQ(meter.moments().mean_square(), 9);
  EXPECT_EQ(meter.moments().signal(), 9);
  EXPECT_EQ(meter.moments().variance(), 0);
}

}  // namespace
}  // namespace rubato
