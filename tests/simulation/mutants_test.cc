// The simulation notices each error of common/mutants.h, and nothing if none is chosen.
#include "common/mutants.h"

#include <gtest/gtest.h>

#include <iostream>
#include <ostream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tests/simulation/run_simulation.h"
#include "tests/simulation/simulation.h"

namespace rubato::simulation {
namespace {

constexpr uint64_t kSeeds = 1000;
constexpr uint64_t kSeedsOfControl = 100;

struct MutantCase {
  Mutant mutant;
  absl::string_view name;
  absl::string_view invariant;
  absl::string_view what;
};

void PrintTo(const MutantCase& mutant, std::ostream* out) { *out << mutant.what; }

constexpr MutantCase kMutants[] = {
#define RUBATO_MUTANT_CASE(name, invariant, what) {Mutant::name, #name, invariant, what},
    RUBATO_LIST_MUTANTS(RUBATO_MUTANT_CASE)
#undef RUBATO_MUTANT_CASE
};

// Holds from its beginning to its end, in this thread.
class Choice {
 public:
  explicit Choice(Mutant mutant) { chosen_mutant = mutant; }
  ~Choice() { chosen_mutant = Mutant::kNone; }
  Choice(const Choice&) = delete;
  Choice& operator=(const Choice&) = delete;
};

class MutantsTest : public testing::TestWithParam<MutantCase> {};

TEST_P(MutantsTest, BreaksItsInvariantWithinAThousandSeeds) {
  const Choice choice(GetParam().mutant);
  std::string other;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::string violation = RunOnce({.seed = seed}).violation;
    if (other.empty()) other = violation;
    if (!absl::StartsWith(violation, GetParam().invariant)) continue;
    std::cout << "seed " << seed << ": " << violation.substr(0, violation.find('\n')) << std::endl;
    return;
  }
  FAIL() << GetParam().invariant << " held for seeds 1 to " << kSeeds << ", although " << GetParam().what
         << (other.empty() ? "" : "; found was ") << other;
}

INSTANTIATE_TEST_SUITE_P(All, MutantsTest, testing::ValuesIn(kMutants),
                         [](const testing::TestParamInfo<MutantCase>& info) { return std::string(info.param.name); });

TEST(NoMutantTest, BreaksNothing) {
  std::ostringstream out;
  SimulationOptions options;
  options.seeds = kSeedsOfControl;
  EXPECT_TRUE(RunSimulation(options, out).ok()) << out.str();
}

TEST(NoMutantTest, IsInForceAfterAChoice) {
  { const Choice choice(Mutant::kGateOffByOne); }
  EXPECT_FALSE(RUBATO_MUTANT(kGateOffByOne));
}

TEST(ViolationTest, IsReportedWithTheSeedThatReplaysIt) {
  const Choice choice(Mutant::kGateOffByOne);
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
