#include "coordinator/rules/policies/parts/ssp_replay.h"

#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

std::vector<double> Steady(double seconds) { return std::vector<double>(8, seconds); }

TEST(ReplaySspTest, WithoutABoundEachIsAsFastAsItIs) {
  EXPECT_NEAR(SspStepsPerSecond({Steady(0.5), Steady(1)}, 0, kNoBound), 3, 0.01);
  EXPECT_NEAR(SspStepsPerSecond({Steady(0.5), Steady(1)}, 0.5, kNoBound), 1 + 1 / 1.5, 0.01);
}

TEST(ReplaySspTest, AWorkerThatIsSlowForGoodSetsThePaceWithAnyBound) {
  for (int64_t bound : {0, 3, 15}) {
    EXPECT_NEAR(SspStepsPerSecond({Steady(0.25), Steady(1)}, 0, bound), 2, 0.1) << bound;
  }
}

// One step of eight takes six times as long, of each worker at another time.
TEST(ReplaySspTest, ABoundTakesUpWhatHappensToOneAfterAnother) {
  std::vector<std::vector<double>> seconds;
  for (size_t worker = 0; worker < 8; ++worker) {
    seconds.push_back(Steady(1));
    seconds.back()[worker] = 6;
  }
  const double sync = SspStepsPerSecond(seconds, 0, 0);
  const double bound = SspStepsPerSecond(seconds, 0, 6);
  EXPECT_NEAR(sync, 8.0 / 6, 0.05);
  EXPECT_GT(bound, 3 * sync);
  EXPECT_LE(bound, SspStepsPerSecond(seconds, 0, kNoBound));
}

TEST(ReplaySspTest, CountsTheUpdatesOfOthersDuringAStep) {
  EXPECT_EQ(ReplaySsp({Steady(1), Steady(1)}, 0, 0).mean_staleness, 0);
  EXPECT_EQ(ReplaySsp({Steady(1), Steady(1)}, 0, 0).steps_per_second, 2);
  // In the mean all others', whoever makes them, as long as nobody waits.
  EXPECT_NEAR(ReplaySsp({Steady(0.25), Steady(1.0625)}, 0, kNoBound).mean_staleness, 1, 0.05);
  EXPECT_NEAR(ReplaySsp({Steady(1), Steady(1), Steady(1)}, 0, 2).mean_staleness, 2, 0.05);
  // Who waits computes with what is there then.
  EXPECT_LT(ReplaySsp({Steady(0.25), Steady(0.25), Steady(1)}, 0, 1).mean_staleness, 1.5);
}

}  // namespace
}  // namespace rubato::coordinator
