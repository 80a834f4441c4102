// What each mode policy is worth in the model of training (coordinator/rules/policies/testing): the time to the target
// under it, beside that of the two modes between which it chooses. A table in Markdown.
//
//   bazel run //bench:policy_table [-- SEEDS [POLICY]]
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "coordinator/rules/policies/testing/scenarios.h"

namespace rubato::coordinator {
namespace {

// Rules, and with which the learning rate goes that they begin with.
struct Contender {
  v1::ConsistencyConfig rules;
  v1::Mode rate_of = v1::SYNC;
  uint32_t quorum = 0;
};

struct Comparison {
  std::string policy;
  Contender chooses;
  std::string first_name, second_name;
  Contender first, second;
};

double MedianSeconds(const std::string& scenario, const Contender& contender, uint64_t seeds, double* changes) {
  std::vector<double> seconds;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const TrainingScenario training = WithRateOf(ScenarioNamed(scenario, seed), contender.rate_of, contender.quorum);
    const TrainingOutcome outcome = Train(training, contender.rules, seed);
    seconds.push_back(outcome.seconds_to_target);
    *changes += static_cast<double>(outcome.changes.size()) / static_cast<double>(seeds);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// Nothing unless its name begins with `policy`.
void Print(const Comparison& comparison, uint64_t seeds, const std::string& policy) {
  if (!absl::StartsWith(comparison.policy, policy)) return;
  std::cout << "\n"
            << comparison.policy << ", median of " << seeds << " seeds:\n\n"
            << absl::StrFormat(
                   "| stragglers | %s | %s | policy | changes | to the better |\n|---|---|---|---|---|---|\n",
                   comparison.first_name, comparison.second_name);
  for (const TrainingScenario& scenario : Scenarios(1)) {
    double ignored = 0, changes = 0;
    const double first = MedianSeconds(scenario.name, comparison.first, seeds, &ignored);
    const double second = MedianSeconds(scenario.name, comparison.second, seeds, &ignored);
    const double chosen = MedianSeconds(scenario.name, comparison.chooses, seeds, &changes);
    std::cout << absl::StrFormat("| %s | %.1f s | %.1f s | %.1f s | %.1f | %+.0f %% |\n", scenario.name, first, second,
                                 chosen, changes, (chosen / std::min(first, second) - 1) * 100);
  }
}

void PrintAll(uint64_t seeds, const std::string& policy) {
  const Contender sync = {.rules = Rules(v1::SYNC)};
  const Contender backup = {.rules = Rules(v1::SYNC, 6), .quorum = 6};
  const Contender async = {.rules = Rules(v1::ASYNC), .rate_of = v1::ASYNC};
  Print({"QUORUM", {.rules = QuorumRules()}, "sync", "quorum 6 of 8", sync, backup}, seeds, policy);
  for (double share : {0.0, 0.1}) {
    Print({absl::StrFormat("SYNC_THEN_ASYNC after %g %% of the steps", share * 100),
           {.rules = SyncThenAsyncRules(share)},
           "sync",
           "async",
           sync,
           async},
          seeds, policy);
  }
  using Policy = v1::ConsistencyConfig;
  v1::ConsistencyConfig bound3 = Rules(v1::SSP), bound15 = Rules(v1::SSP);
  bound3.set_staleness_bound(3);
  bound15.set_staleness_bound(15);
  const Contender ssp3 = {.rules = bound3, .rate_of = v1::SSP}, ssp15 = {.rules = bound15, .rate_of = v1::SSP};
  const Contender without_one = {.rules = Rules(v1::SYNC, 7), .quorum = 7};
  // What it chooses between is SYNC with equal batches, and SYNC with others, which is what the policy's column is.
  Print({"BALANCE", {.rules = MeasuringRules(Policy::BALANCE)}, "sync", "sync", sync, sync}, seeds, policy);
  Print({"STRAGGLER", {.rules = MeasuringRules(Policy::STRAGGLER)}, "sync", "quorum 7 of 8", sync, without_one}, seeds,
        policy);
  Print(
      {"DSSP", {.rules = MeasuringRules(Policy::DSSP, v1::SSP, 3), .rate_of = v1::SSP}, "ssp 3", "ssp 15", ssp3, ssp15},
      seeds, policy);
  Print({"STALENESS_BUDGET of 16", {.rules = StalenessBudgetRules(v1::SYNC, 16)}, "sync", "ssp 15", sync, ssp15}, seeds,
        policy);
}

}  // namespace
}  // namespace rubato::coordinator

int main(int argc, char** argv) {
  uint64_t seeds = 11;
  if (argc > 3 || (argc >= 2 && (!absl::SimpleAtoi(argv[1], &seeds) || seeds < 1))) {
    std::cerr << "usage: policy_table [SEEDS [POLICY]], 1 or more seeds\n";
    return 1;
  }
  rubato::coordinator::PrintAll(seeds, argc > 2 ? argv[2] : "");
  return 0;
}
