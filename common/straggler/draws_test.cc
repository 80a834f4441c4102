#include "common/straggler/draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace rubato {
namespace {

constexpr int kDraws = 20000;

// Sorted.
std::vector<double> Draw(const std::function<double(Random*)>& draw) {
  Random random(7, StreamId("test"));
  std::vector<double> drawn(kDraws);
  for (double& x : drawn) x = draw(&random);
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

// The share of draws up to `quantile` is `probability`, within five standard deviations of what chance makes of it.
void ExpectQuantile(const std::vector<double>& drawn, double quantile, double probability) {
  const auto up_to = std::upper_bound(drawn.begin(), drawn.end(), quantile) - drawn.begin();
  EXPECT_NEAR(static_cast<double>(up_to) / kDraws, probability, 5 * std::sqrt(probability * (1 - probability) / kDraws))
      << "up to " << quantile;
}

double Mean(const std::vector<double>& drawn) {
  double sum = 0;
  for (double x : drawn) sum += x;
  return sum / static_cast<double>(drawn.size());
}

double Deviation(const std::vector<double>& drawn) {
  const double mean = Mean(drawn);
  double squares = 0;
  for (double x : drawn) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(drawn.size()));
}

TEST(DrawsTest, ExponentialTimes) {
  const std::vector<double> drawn = Draw(DrawExponential);
  for (double p : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) ExpectQuantile(drawn, -std::log(1 - p), p);
  EXPECT_GE(drawn.front(), 0);
}

TEST(DrawsTest, ParetoTimesHaveAHeavyTailWithAnEnd) {
  for (double shape : {0.5, 1.5, 3.0}) {
    const std::vector<double> drawn = Draw([&](Random* random) { return DrawPareto(shape, random); });
    for (double p : {0.1, 0.5, 0.9}) ExpectQuantile(drawn, std::pow(1 - p, -1 / shape), p);
    EXPECT_GE(drawn.front(), 1);
    EXPECT_LE(drawn.back(), kParetoLimit);
  }
  EXPECT_EQ(Draw([](Random* random) { return DrawPareto(0.1, random); }).back(), kParetoLimit);
}

TEST(DrawsTest, GammaTimesHaveTheirMeanAndVariation) {
  for (double variation : {0.001, 0.1, 0.6, 1.0, 2.0}) {
    const std::vector<double> drawn = Draw([&](Random* random) { return DrawGamma(variation, random); });
    EXPECT_NEAR(Mean(drawn), 1, 5 * variation / std::sqrt(kDraws)) << variation;
    EXPECT_NEAR(Deviation(drawn), variation, 0.1 * variation) << variation;
    EXPECT_GE(drawn.front(), 0);
  }
}

// Of shape 1 it is the exponential distribution, and of shape 4 the sum of four.
TEST(DrawsTest, GammaTimesHaveTheirQuantiles) {
  const std::vector<double> one = Draw([](Random* random) { return DrawGamma(1, random); });
  for (double p : {0.01, 0.1, 0.5, 0.9, 0.99}) ExpectQuantile(one, -std::log(1 - p), p);
  const std::vector<double> four = Draw([](Random* random) { return DrawGamma(0.5, random); });
  for (double x : {0.25, 0.5, 1.0, 2.0}) {
    const double t = 4 * x;
    ExpectQuantile(four, x, 1 - std::exp(-t) * (1 + t + t * t / 2 + t * t * t / 6));
  }
  // Of shape 1/2 it is half the square of a normal number.
  const std::vector<double> half = Draw([](Random* random) { return DrawGamma(std::sqrt(2.0), random); });
  for (double z : {0.1, 0.5, 1.0, 2.0}) ExpectQuantile(half, z * z, std::erf(z / std::sqrt(2.0)));
}

TEST(DrawsTest, LengthsAreLogUniformWithBothEnds) {
  const std::vector<double> drawn =
      Draw([](Random* random) { return static_cast<double>(DrawLogUniform(10, 200, random)); });
  EXPECT_EQ(drawn.front(), 10);
  EXPECT_EQ(drawn.back(), 200);
  for (double length : {10.0, 20.0, 44.0, 100.0, 150.0}) {
    ExpectQuantile(drawn, length, std::log((length + 1) / 10) / std::log(201 / 10.0));
  }
  Random random(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(DrawLogUniform(5, 5, &random), 5);
}

TEST(DrawsTest, FailuresBeforeASuccess) {
  const std::vector<double> drawn =
      Draw([](Random* random) { return static_cast<double>(DrawFailures(0.02, random)); });
  EXPECT_EQ(drawn.front(), 0);
  for (double failures : {0.0, 10.0, 50.0, 200.0}) ExpectQuantile(drawn, failures, 1 - std::pow(0.98, failures + 1));
  Random random(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(DrawFailures(1, &random), 0);
}

}  // namespace
}  // namespace rubato
