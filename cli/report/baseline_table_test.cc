#include "cli/report/baseline_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Comparison OfSeeds(uint64_t seeds) {
  Comparison comparison;
  comparison.modes = {{"sync", {}}, {"async", {}}};
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    for (ComparedMode& mode : comparison.modes) {
      ComparedRun& run = mode.runs.emplace_back();
      run.seed = seed;
      run.summary.ok = true;
      run.summary.final_accuracy = mode.name == "sync" ? 0.9 : 0.9 - 0.01 * static_cast<double>(seed);
      run.summary.examples_per_second = mode.name == "sync" ? 100 : 150;
    }
  }
  return comparison;
}

TEST(BaselineTableTest, HasDifferencesWithIntervalsPAndPairs) {
  EXPECT_EQ(FormatBaselineTable(OfSeeds(6)),
            "Against sync, run by run with the same seed:\n"
            "mode     quantity    difference     95 % interval  p (Holm)  pairs\n"
            "─────  ──────────  ────────────  ────────────────  ────────  ─────\n"
            "async    accuracy  -3.50 points    -5.33 to -1.67     0.031      6\n"
            "async  examples/s        x1.500  x1.500 to x1.500     0.031      6\n"
            "\n");
}

TEST(BaselineTableTest, OfTooFewPairsItShowsNoP) {
  EXPECT_THAT(FormatBaselineTable(OfSeeds(5)), HasSubstr("         -      5\n"));
  EXPECT_THAT(FormatBaselineTable(OfSeeds(5)),
              HasSubstr("\nToo few pairs for a verdict: whatever the numbers, p < 0.05 takes at least 6"));
  EXPECT_THAT(FormatBaselineTable(OfSeeds(5)), Not(HasSubstr("0.06")));
}

TEST(BaselineTableTest, OfOneSeedItSaysHowManyItTakes) {
  EXPECT_EQ(FormatBaselineTable(OfSeeds(1)),
            "Against sync, run by run with the same seed:\n"
            "One seed says nothing about chance: intervals take at least 2, and p < 0.05 at least 6 (--seeds=6)\n\n");
}

TEST(BaselineTableTest, IsEmptyForOneMode) {
  Comparison comparison = OfSeeds(3);
  comparison.modes.pop_back();
  EXPECT_EQ(FormatBaselineTable(comparison), "");
}

}  // namespace
}  // namespace rubato
