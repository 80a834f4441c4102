// What each mode policy is worth in the model of training (coordinator/rules/policies/testing): the time to the target
// under it, beside that of the two modes between which it chooses. A table in Markdown.
//
//   bazel run //bench:policy_table [-- SEEDS [POLICY]]
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "coordinator/rules/policies/testing/scenarios.h"

namespace rubato::coordinator {
namespace {

// Those of a seed.
using ScenarioList = std::vector<TrainingScenario> (*)(uint64_t seed);

// From servers in the same rack to others on another continent; a batch takes 30 ms.
std::vector<TrainingScenario> Distances(uint64_t seed) {
  std::vector<TrainingScenario> distances;
  for (double seconds : {0.002, 0.01, 0.03, 0.1, 0.3}) distances.push_back(DistantServers(seconds, seed));
  return distances;
}

// The same with a constant rate, of workers each of which has data of its own.
std::vector<TrainingScenario> DistancesOfOwners(uint64_t seed) {
  std::vector<TrainingScenario> distances;
  for (double seconds : {0.002, 0.01, 0.03, 0.1, 0.3}) distances.push_back(DistantOwners(seconds, seed));
  return distances;
}

// Rules, and with which the learning rate goes that they begin with.
struct Contender {
  v1::ConsistencyConfig rules;
  v1::Mode rate_of = v1::SYNC;
  uint32_t quorum = 0;
};

struct Named {
  std::string name;
  Contender contender;
};

struct Comparison {
  std::string policy;
  Contender chooses;
  // The rules between which it chooses, as far as they are ones that hold from the beginning to the end.
  std::vector<Named> between;
  ScenarioList scenarios = Scenarios;
};

// Of the scenario at `place`.
double MedianSeconds(ScenarioList scenarios, size_t place, const Contender& contender, uint64_t seeds,
                     double* changes) {
  std::vector<double> seconds;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const TrainingScenario training = WithRateOf(scenarios(seed)[place], contender.rate_of, contender.quorum);
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
  std::cout << "\n" << comparison.policy << ", median of " << seeds << " seeds:\n\n| workers |";
  for (const Named& one : comparison.between) std::cout << " " << one.name << " |";
  std::cout << " policy | changes | to the better |\n|---|---|---|---|"
            << (comparison.between.size() > 1 ? "---|---|\n" : "---|\n");
  const std::vector<TrainingScenario> scenarios = comparison.scenarios(1);
  for (size_t place = 0; place < scenarios.size(); ++place) {
    double ignored = 0, changes = 0, better = std::numeric_limits<double>::infinity();
    std::cout << "| " << scenarios[place].name << " |";
    for (const Named& one : comparison.between) {
      const double seconds = MedianSeconds(comparison.scenarios, place, one.contender, seeds, &ignored);
      better = std::min(better, seconds);
      std::cout << absl::StrFormat(" %.1f s |", seconds);
    }
    const double chosen = MedianSeconds(comparison.scenarios, place, comparison.chooses, seeds, &changes);
    std::cout << absl::StrFormat(" %.1f s | %.1f | %+.0f %% |\n", chosen, changes, (chosen / better - 1) * 100);
  }
}

void PrintAll(uint64_t seeds, const std::string& policy) {
  v1::ConsistencyConfig bound3 = Rules(v1::SSP), bound15 = Rules(v1::SSP);
  bound3.set_staleness_bound(3);
  bound15.set_staleness_bound(15);
  const Named sync = {"sync", {.rules = Rules(v1::SYNC)}};
  const Named async = {"async", {.rules = Rules(v1::ASYNC), .rate_of = v1::ASYNC}};
  const Named backup = {"quorum 6 of 8", {.rules = Rules(v1::SYNC, 6), .quorum = 6}};
  const Named without_one = {"quorum 7 of 8", {.rules = Rules(v1::SYNC, 7), .quorum = 7}};
  const Named ssp3 = {"ssp 3", {.rules = bound3, .rate_of = v1::SSP}};
  const Named ssp15 = {"ssp 15", {.rules = bound15, .rate_of = v1::SSP}};
  using Policy = v1::ConsistencyConfig;
  std::vector<Comparison> comparisons = {{"QUORUM", {.rules = QuorumRules()}, {sync, backup}}};
  for (double share : {0.0, 0.1}) {
    comparisons.push_back({absl::StrFormat("SYNC_THEN_ASYNC after %g %% of the steps", share * 100),
                           {.rules = SyncThenAsyncRules(share)},
                           {sync, async}});
  }
  // The other batches that it may choose are not known before.
  comparisons.push_back({"BALANCE", {.rules = MeasuringRules(Policy::BALANCE)}, {sync}});
  comparisons.push_back({"STRAGGLER", {.rules = MeasuringRules(Policy::STRAGGLER)}, {sync, without_one}});
  comparisons.push_back(
      {"DSSP", {.rules = MeasuringRules(Policy::DSSP, v1::SSP, 3), .rate_of = v1::SSP}, {ssp3, ssp15}});
  comparisons.push_back({"STALENESS_BUDGET of 16", {.rules = StalenessBudgetRules(v1::SYNC, 16)}, {sync, ssp15}});
  v1::ConsistencyConfig every16 = Rules(v1::SYNC);
  every16.set_sync_every(16);
  const std::vector<Named> exchanges = {{"an exchange every batch", {.rules = Rules(v1::SYNC)}},
                                        {"every 16", {.rules = every16}}};
  const Contender post_local = {.rules = MeasuringRules(Policy::POST_LOCAL)}, adacomm = {.rules = AdaCommRules()};
  comparisons.push_back({"POST_LOCAL", post_local, exchanges, Distances});
  comparisons.push_back({"POST_LOCAL, workers with data of their own", post_local, exchanges, DistancesOfOwners});
  comparisons.push_back({"ADACOMM", adacomm, exchanges, Distances});
  comparisons.push_back({"ADACOMM, workers with data of their own", adacomm, exchanges, DistancesOfOwners});
  for (const Comparison& comparison : comparisons) Print(comparison, seeds, policy);
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
