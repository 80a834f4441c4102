// Every order of events of the smallest jobs, with the real rules; and that an error in the rules is noticed.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "common/mutants.h"
#include "gtest/gtest.h"
#include "tests/explorer/explore.h"
#include "tests/explorer/job_system.h"
#include "tests/explorer/scope.h"

namespace rubato::explorer {
namespace {

Exploration ExploreJob(const Scope& scope) {
  JobSystem system(scope);
  // Many times what any of these has: an error may well make it endless.
  Exploration found = Explore(&system, {.max_states = 100000});
  std::cout << Describe(scope) << ": " << found.states << " states, " << found.transitions << " transitions\n";
  return found;
}

simulation::Rules RulesOf(const std::string& text) { return *ParseRules(text); }

struct Case {
  std::string name;
  Scope scope;
};

class ExplorerTest : public testing::TestWithParam<Case> {};

TEST_P(ExplorerTest, NoOrderOfEventsBreaksAnInvariant) {
  const Exploration found = ExploreJob(GetParam().scope);
  EXPECT_EQ(found.violation, "");
  EXPECT_TRUE(found.complete);
  EXPECT_GT(found.states, 100);
}

const Case kCases[] = {
    {"Sync", {.start = RulesOf("sync")}},
    {"Ssp", {.start = RulesOf("ssp:1")}},
    {"Async", {.start = RulesOf("async")}},
    {"Partitions", {.partitions = 2, .start = RulesOf("ssp:1")}},
    {"SyncCut", {.chunks_per_message = 2, .steps = 1, .stay = true, .start = RulesOf("sync"), .cut = true}},
    {"AsyncCut", {.chunks_per_message = 2, .steps = 2, .stay = true, .start = RulesOf("async"), .cut = true}},
    {"Switch",
     {.chunks_per_message = 2, .steps = 2, .stay = true, .start = RulesOf("async"), .switch_to = RulesOf("sync")}},
    {"Crash", {.steps = 1, .stay = true, .start = RulesOf("sync"), .crash_worker = true}},
    {"BrokenStream", {.steps = 1, .start = RulesOf("async"), .break_stream = true}},
    {"RepeatedMessage", {.steps = 1, .start = RulesOf("async"), .repeat = true}},
    {"Timeout", {.steps = 1, .start = RulesOf("sync"), .timeout = true}},
    {"CoordinatorCrash", {.workers = 1, .steps = 1, .start = RulesOf("sync"), .crash_coordinator = true}},
    {"CoordinatorCrashAsync",
     {.chunks_per_message = 2, .steps = 1, .stay = true, .start = RulesOf("async"), .crash_coordinator = true}},
    {"CoordinatorCrashCut",
     {.workers = 1,
      .chunks_per_message = 2,
      .steps = 1,
      .stay = true,
      .start = RulesOf("sync"),
      .cut = true,
      .crash_coordinator = true}},
    {"ServerCrash",
     {.chunks_per_message = 2, .steps = 1, .stay = true, .start = RulesOf("sync"), .crash_server = true}},
    {"ServerCrashAsync",
     {.chunks_per_message = 2, .steps = 1, .stay = true, .start = RulesOf("async"), .crash_server = true}},
    {"ServerCrashCut",
     {.workers = 1,
      .chunks_per_message = 2,
      .steps = 1,
      .stay = true,
      .start = RulesOf("sync"),
      .cut = true,
      .crash_server = true}},
};

INSTANTIATE_TEST_SUITE_P(Scopes, ExplorerTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

// An error of common/mutants.h, and the scope in which the invariant is violated.
struct MutantCase {
  Mutant mutant;
  std::string scope;
  std::string invariant;
};

class ExplorerMutantTest : public testing::TestWithParam<MutantCase> {
 protected:
  ExplorerMutantTest() { chosen_mutant = GetParam().mutant; }
  ~ExplorerMutantTest() override { chosen_mutant = Mutant::kNone; }
};

TEST_P(ExplorerMutantTest, AnErrorIsNoticed) {
  const Case* found = std::find_if(std::begin(kCases), std::end(kCases),
                                   [](const Case& other) { return other.name == GetParam().scope; });
  ASSERT_NE(found, std::end(kCases));
  const std::string violation = ExploreJob(found->scope).violation;
  EXPECT_TRUE(absl::StartsWith(violation, GetParam().invariant)) << violation;
}

const MutantCase kMutants[] = {
    {Mutant::kGateOffByOne, "Ssp", "I2"},
    {Mutant::kBarrierForgetsSlow, "Sync", "I1"},
    {Mutant::kFirstStepNotHeld, "Switch", "I2"},
    {Mutant::kEntryForgetsWork, "AsyncCut", "I7"},
    {Mutant::kAnnouncedNotHeld, "SyncCut", "I5"},
    {Mutant::kDeduperForgets, "BrokenStream", "I4"},
    {Mutant::kSyncNotRemembered, "Timeout", "I4"},
    {Mutant::kTimeoutAcknowledges, "Timeout", "I3"},
    {Mutant::kReducerTakesTwice, "Timeout", "I1"},
    {Mutant::kReducerReverses, "Sync", "I1"},
    {Mutant::kMeanLosesLast, "Sync", "I1"},
    {Mutant::kMeanUnweighted, "Sync", "I1"},
    {Mutant::kAmendmentClosesNothing, "Crash", "I4"},
    {Mutant::kFirstStepOffByOne, "SyncCut", "I5"},
    {Mutant::kAmendmentKeepsNumber, "Sync", "I5"},
    {Mutant::kCutIgnoresMembers, "AsyncCut", "I7"},
    {Mutant::kCutHoldsNothing, "AsyncCut", "I7"},
    {Mutant::kHeldPushTaken, "AsyncCut", "I7"},
    {Mutant::kCutBeforeAllParts, "SyncCut", "I7"},
    {Mutant::kCutForgetsWorkers, "SyncCut", "I7"},
    {Mutant::kResendsAsNextStep, "BrokenStream", "I4"},
    {Mutant::kResendForgetsPush, "BrokenStream", "I4"},
    {Mutant::kPendingPushForgotten, "Timeout", "I5"},
    {Mutant::kAnnouncementNotReplayed, "CoordinatorCrashCut", "I4"},
    {Mutant::kRollbackKeepsTerm, "ServerCrash", "I7"},
    {Mutant::kRollbackKeepsName, "ServerCrash", "I7"},
    {Mutant::kRollbackForgetsGenerations, "ServerCrash", "I5"},
};

INSTANTIATE_TEST_SUITE_P(Errors, ExplorerMutantTest, testing::ValuesIn(kMutants));

}  // namespace
}  // namespace rubato::explorer
