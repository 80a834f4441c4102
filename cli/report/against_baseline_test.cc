#include "cli/report/against_baseline.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ComparedRun Run(uint64_t seed, double accuracy, double speed) {
  ComparedRun run;
  run.seed = seed;
  run.summary.ok = true;
  run.summary.final_accuracy = accuracy;
  run.summary.examples_per_second = speed;
  run.summary.seconds = 100;
  return run;
}

// In async accuracy is 0.01 to 0.06 less, and speed twice as high.
Comparison OfSeeds(uint64_t seeds) {
  Comparison comparison;
  comparison.modes = {{"sync", {}}, {"async", {}}};
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const double step = static_cast<double>(seed);
    comparison.modes[0].runs.push_back(Run(seed, 0.9, 100 * step));
    comparison.modes[1].runs.push_back(Run(seed, 0.9 - 0.01 * step, 200 * step));
  }
  return comparison;
}

TEST(AgainstBaselineTest, OneModeIsComparedWithNothing) {
  Comparison comparison = OfSeeds(6);
  comparison.modes.pop_back();
  EXPECT_FALSE(CompareWithBaseline(comparison).has_value());
}

TEST(AgainstBaselineTest, OneSeedHasNoStatistics) {
  const AgainstBaseline against = *CompareWithBaseline(OfSeeds(1));
  EXPECT_THAT(against.results, IsEmpty());
  EXPECT_THAT(NotesOn(against),
              ElementsAre("One seed says nothing about chance: intervals take at least 2, and p < 0.05 "
                          "at least 6 (--seeds=6)"));
}

TEST(AgainstBaselineTest, ScoresAreDifferencesAndSpeedsRatios) {
  const AgainstBaseline against = *CompareWithBaseline(OfSeeds(6));
  EXPECT_EQ(against.baseline, "sync");
  ASSERT_EQ(against.results.size(), 2u);
  const BaselineResult& accuracy = against.results[0];
  EXPECT_EQ(accuracy.mode, "async");
  EXPECT_NEAR(*accuracy.estimate, -0.035, 1e-12);
  EXPECT_LT(accuracy.interval->high, 0);
  EXPECT_DOUBLE_EQ(*accuracy.p, 0.03125);
  EXPECT_TRUE(accuracy.can_tell);
  const BaselineResult& speed = against.results[1];
  EXPECT_NEAR(*speed.estimate, 2, 1e-12);
  EXPECT_NEAR(speed.interval->low, 2, 1e-12);
  EXPECT_NEAR(speed.interval->high, 2, 1e-12);
  EXPECT_THAT(NotesOn(against), IsEmpty());
}

TEST(AgainstBaselineTest, TheBaselineMayBeAnotherMode) {
  Comparison comparison = OfSeeds(6);
  comparison.baseline = "async";
  const AgainstBaseline against = *CompareWithBaseline(comparison);
  EXPECT_EQ(against.baseline, "async");
  EXPECT_EQ(against.results[0].mode, "sync");
  EXPECT_NEAR(*against.results[0].estimate, 0.035, 1e-12);
}

TEST(AgainstBaselineTest, UnderSixPairsItCannotTell) {
  const AgainstBaseline against = *CompareWithBaseline(OfSeeds(5));
  EXPECT_FALSE(against.results[0].can_tell);
  EXPECT_THAT(NotesOn(against), ElementsAre(HasSubstr("p < 0.05 takes at least 6 (--seeds=6)")));
}

TEST(AgainstBaselineTest, MoreModesTakeMorePairs) {
  Comparison comparison = OfSeeds(6);
  comparison.modes.push_back({"ssp:2", comparison.modes[1].runs});
  AgainstBaseline against = *CompareWithBaseline(comparison);
  EXPECT_EQ(against.pairs_needed, 7);
  EXPECT_DOUBLE_EQ(*against.results[0].p_holm, 0.0625);
  EXPECT_FALSE(against.results[0].can_tell);
  comparison = OfSeeds(7);
  comparison.modes.push_back({"ssp:2", comparison.modes[1].runs});
  against = *CompareWithBaseline(comparison);
  EXPECT_DOUBLE_EQ(*against.results[0].p_holm, 0.03125);
  EXPECT_TRUE(against.results[0].can_tell);
}

TEST(AgainstBaselineTest, PairsHaveTheSameSeedWhateverTheOrderOfRuns) {
  Comparison comparison = OfSeeds(6);
  std::reverse(comparison.modes[1].runs.begin(), comparison.modes[1].runs.end());
  EXPECT_NEAR(CompareWithBaseline(comparison)->results[1].interval->low, 2, 1e-12);
}

TEST(AgainstBaselineTest, ASeedThatLacksOneOfTheTwoIsLeftOutAndThatIsSaid) {
  Comparison comparison = OfSeeds(8);
  comparison.modes[0].runs[2].summary.ok = false;
  comparison.modes[1].runs[4].summary.final_accuracy.reset();
  comparison.modes[1].runs.pop_back();
  const AgainstBaseline against = *CompareWithBaseline(comparison);
  EXPECT_EQ(against.results[0].pairs, 5);
  EXPECT_EQ(against.results[0].left_out, 3);
  EXPECT_EQ(against.results[1].pairs, 6);
  EXPECT_THAT(
      NotesOn(against),
      ::testing::Contains("async: 3 seeds are left out of accuracy, where a run of async or of sync failed or has "
                          "no such number"));
}

TEST(AgainstBaselineTest, TimesToTargetAreComparedAsRatioOfTheirMeans) {
  Comparison comparison = OfSeeds(6);
  comparison.target = {.value = 0.8};
  for (size_t i = 0; i < 6; ++i) {
    comparison.modes[0].runs[i].summary.seconds_to_target = 10.0 + static_cast<double>(i);
    comparison.modes[1].runs[i].summary.seconds_to_target = 20.0 + 2 * static_cast<double>(i);
  }
  const BaselineResult result = CompareWithBaseline(comparison)->results[2];
  EXPECT_EQ(result.quantity.name, "seconds_to_target");
  EXPECT_NEAR(*result.estimate, 2, 1e-12);
  EXPECT_NEAR(result.interval->low, 2, 1e-12);
  EXPECT_DOUBLE_EQ(*result.p, 0.03125);
}

TEST(AgainstBaselineTest, ARunThatMissesTheTargetIsNotLeftOut) {
  Comparison comparison = OfSeeds(6);
  comparison.target = {.value = 0.8};
  for (ComparedMode& mode : comparison.modes) {
    for (ComparedRun& run : mode.runs) run.summary.seconds_to_target = 20;
  }
  for (size_t i = 0; i < 3; ++i) comparison.modes[1].runs[i].summary.seconds_to_target.reset();
  const AgainstBaseline against = *CompareWithBaseline(comparison);
  const BaselineResult& result = against.results[2];
  EXPECT_EQ(result.pairs, 6);
  EXPECT_EQ(result.missed, 3);
  EXPECT_EQ(result.horizon, 100);
  EXPECT_NEAR(*result.estimate, 60.0 / 20, 1e-12);
  EXPECT_THAT(NotesOn(against),
              ElementsAre("Runs that missed the target: 0 of 6 in sync, 3 of 6 in async; what it takes is compared by "
                          "restricted means (Kaplan-Meier) up to 100.0 s"));
}

TEST(AgainstBaselineTest, WhereNobodyReachedTheTargetNothingIsCompared) {
  Comparison comparison = OfSeeds(6);
  comparison.target = {.value = 0.99};
  const AgainstBaseline against = *CompareWithBaseline(comparison);
  EXPECT_FALSE(against.results[2].estimate.has_value());
  EXPECT_FALSE(against.results[2].p_holm.has_value());
  EXPECT_THAT(NotesOn(against), ElementsAre(HasSubstr("6 of 6 in sync, 6 of 6 in async")));
}

}  // namespace
}  // namespace rubato
