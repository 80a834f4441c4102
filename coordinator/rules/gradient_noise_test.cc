#include "coordinator/rules/gradient_noise.h"

#include <gtest/gtest.h>

#include "coordinator/testing/small_job.h"

namespace rubato::coordinator {
namespace {

// Of a server that has measured so many updates, each with these moments.
v1::GradientMoments Moments(int64_t updates, double mean_square, double signal, double variance) {
  v1::GradientMoments moments;
  const auto count = static_cast<double>(updates);
  moments.set_updates(updates);
  moments.set_mean_square(count * mean_square);
  moments.set_signal(count * signal);
  moments.set_variance(count * variance);
  return moments;
}

TEST(GradientNoiseTest, AddsUpChunksOfSeveralServers) {
  GradientNoise noise(/*chunks=*/4);
  EXPECT_FALSE(noise.Recent().has_norm());
  // Three chunks here and one there, twenty steps.
  noise.OnHeartbeat(ServerTask(0), Moments(60, 3, 1, 32));
  noise.OnHeartbeat(ServerTask(1), Moments(20, 7, 1, 32));
  EXPECT_EQ(noise.sums().steps, 20);
  EXPECT_EQ(noise.sums().mean_square, 20 * 16);
  EXPECT_NEAR(noise.Recent().norm(), 4, 0.2) << "the first heartbeat counts less than the second";
  EXPECT_NEAR(noise.Recent().scale_examples(), 32, 1e-9);
}

TEST(GradientNoiseTest, OvertakenHeartbeatsChangeNothingAndANewProcessBeginsAtZero) {
  GradientNoise noise(1);
  noise.OnHeartbeat(ServerTask(0), Moments(10, 1, 1, 1));
  noise.OnHeartbeat(ServerTask(0), Moments(8, 1, 1, 1));
  EXPECT_EQ(noise.sums().steps, 10);
  noise.OnHeartbeat(ServerTask(0, /*incarnation=*/2), Moments(4, 1, 1, 1));
  EXPECT_EQ(noise.sums().steps, 14);
  EXPECT_EQ(noise.sums().signal, 14);
}

TEST(GradientNoiseTest, FollowsWhatChanges) {
  GradientNoise noise(1);
  noise.OnHeartbeat(ServerTask(0), Moments(9, 4, 2, 20));
  EXPECT_EQ(noise.Recent().norm(), 2);
  EXPECT_FALSE(noise.Recent().has_scale_examples()) << "too few steps";
  noise.OnHeartbeat(ServerTask(0), Moments(50, 4, 2, 20));
  EXPECT_DOUBLE_EQ(noise.Recent().scale_examples(), 10);
  v1::GradientMoments later = Moments(50, 4, 2, 20);
  for (int step = 0; step < 500; ++step) {
    later.set_updates(later.updates() + 1);
    later.set_mean_square(later.mean_square() + 9);
    later.set_signal(later.signal() + 1);
    later.set_variance(later.variance() + 40);
    noise.OnHeartbeat(ServerTask(0), later);
  }
  EXPECT_NEAR(noise.Recent().scale_examples(), 40, 0.1);
  EXPECT_NEAR(noise.Recent().norm(), 3, 0.01);
}

TEST(GradientNoiseTest, OfNothingButNoiseThereIsNoScale) {
  GradientNoise noise(1);
  noise.OnHeartbeat(ServerTask(0), Moments(20, 1, -0.25, 20));
  EXPECT_TRUE(noise.Recent().has_norm());
  EXPECT_FALSE(noise.Recent().has_scale_examples());
}

}  // namespace
}  // namespace rubato::coordinator
