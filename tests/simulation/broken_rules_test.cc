// Built against rules of which one is broken on purpose: shows that the simulation would notice.
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/run_simulation.h"
#include "tests/simulation/simulation.h"

namespace rubato::simulation {
namespace {

constexpr uint64_t kSeeds = 300;

TEST(BrokenRulesTest, BreakTheirInvariantWithinAFewHundredSeeds) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (absl::StartsWith(RunOnce({.seed = seed}).violation, RUBATO_BROKEN_INVARIANT)) return;
  }
  FAIL() << RUBATO_BROKEN_INVARIANT << " held for seeds 1 to " << kSeeds;
}

TEST(BrokenRulesTest, AreReportedWithTheSeedThatReplaysThem) {
  std::ostringstream out;
  SimulationOptions options;
  options.seeds = kSeeds;
  ASSERT_TRUE(absl::IsInternal(RunSimulation(options, out)));
  const std::string mark = "replay with --seed=";
  const size_t at = out.str().find(mark);
  ASSERT_NE(at, std::string::npos) << out.str();

  std::ostringstream replayed;
  options.first_seed = std::stoull(out.str().substr(at + mark.size()));
  options.seeds = 1;
  EXPECT_TRUE(absl::IsInternal(RunSimulation(options, replayed)));
  EXPECT_EQ(replayed.str(), out.str());
}

}  // namespace
}  // namespace rubato::simulation
