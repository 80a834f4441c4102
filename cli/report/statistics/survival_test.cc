#include "cli/report/statistics/survival.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

Duration Reached(double at) { return {at, true}; }
Duration Missed(double at) { return {at, false}; }

// The 6-MP group of the leukaemia trial that every textbook has (Freireich et al. 1963; Cox and Oakes 1984, table 1.1).
std::vector<Duration> Leukaemia() {
  std::vector<Duration> durations;
  for (double at : {6, 6, 6, 7, 10, 13, 16, 22, 23}) durations.push_back(Reached(at));
  for (double at : {6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35}) durations.push_back(Missed(at));
  return durations;
}

double ShareAt(const std::vector<SurvivalStep>& steps, double at) {
  double share = 1;
  for (const SurvivalStep& step : steps) share = step.at <= at ? step.share : share;
  return share;
}

TEST(SurvivalTest, HasTheTextbooksShares) {
  const std::vector<SurvivalStep> steps = KaplanMeier(Leukaemia());
  EXPECT_NEAR(ShareAt(steps, 6), 0.857, 5e-4);
  EXPECT_NEAR(ShareAt(steps, 7), 0.807, 5e-4);
  EXPECT_NEAR(ShareAt(steps, 10), 0.753, 5e-4);
  EXPECT_NEAR(ShareAt(steps, 13), 0.690, 5e-4);
  EXPECT_NEAR(ShareAt(steps, 16), 0.627, 5e-4);
  EXPECT_NEAR(ShareAt(steps, 22), 0.538, 5e-4);
  EXPECT_NEAR(ShareAt(steps, 23), 0.448, 5e-4);
}

TEST(SurvivalTest, WithoutCensoringTheRestrictedMeanIsTheMean) {
  EXPECT_DOUBLE_EQ(RestrictedMean(KaplanMeier({Reached(3), Reached(1), Reached(5)}), 5), 3);
  EXPECT_DOUBLE_EQ(RestrictedMean(KaplanMeier({Reached(3), Reached(1), Reached(5)}), 4), 8.0 / 3);
}

TEST(SurvivalTest, ARunThatMissesItCountsForAtLeastAsLongAsItWasSeen) {
  // Never the mean of those that reached it, 2.
  EXPECT_DOUBLE_EQ(RestrictedMean(KaplanMeier({Reached(2), Missed(10)}), 10), 6);
  EXPECT_DOUBLE_EQ(RestrictedMean(KaplanMeier({Missed(10), Missed(12)}), 10), 10);
  // Censored in between: the half that is left then shares in what comes later.
  EXPECT_DOUBLE_EQ(RestrictedMean(KaplanMeier({Missed(1), Reached(4)}), 4), 4);
}

TEST(SurvivalTest, WhatIsThereSeveralTimesCountsAsOften) {
  const std::vector<Duration> once = {Reached(1), Missed(2), Reached(3)};
  const std::vector<Duration> often = {Reached(1), Reached(1), Reached(3)};
  EXPECT_DOUBLE_EQ(RestrictedMean(KaplanMeier(once, {2, 0, 1}), 3), RestrictedMean(KaplanMeier(often), 3));
}

TEST(SurvivalTest, HorizonIsTheSmallestLargestDurationThatWasNotReached) {
  EXPECT_EQ(LatestHorizon({{Reached(2), Missed(10)}, {Missed(8), Reached(3)}}), 8);
  EXPECT_EQ(LatestHorizon({{Reached(2), Reached(5)}, {Missed(8), Reached(3)}}), 8);
  EXPECT_EQ(LatestHorizon({{Reached(2), Reached(5)}, {Missed(1), Reached(3)}}), 5);
  EXPECT_EQ(LatestHorizon({{Reached(4), Missed(4)}, {Reached(9)}}), 4);
  EXPECT_EQ(LatestHorizon({{}, {}}), 0);
}

}  // namespace
}  // namespace rubato
