#include "coordinator/rules/policies/testing/scenarios.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/random.h"
#include "coordinator/rules/learning_rate_rule.h"

namespace rubato::coordinator {
namespace {

constexpr uint32_t kWorkers = 8;
constexpr double kSeconds = 0.03;

// Uniform, over 0.
double Draw(uint64_t seed, uint32_t worker, int64_t step) {
  return 1 - Random(seed, StreamId("step", worker, static_cast<uint64_t>(step))).Uniform();
}

double Pareto(double u, double shape) { return std::min(kSeconds * std::pow(u, -1 / shape), 1000 * kSeconds); }

// A little jitter, without which all steps would end at once.
double Jitter(double u) { return 0.95 + 0.1 * u; }

TrainingScenario Make(std::string name, std::function<double(double u, uint32_t worker, int64_t step)> seconds,
                      uint64_t seed) {
  return {.name = std::move(name),
          .workers = kWorkers,
          .step_seconds = [seconds = std::move(seconds), seed](uint32_t worker, int64_t step) {
            return seconds(Draw(seed, worker, step), worker, step);
          }};
}

}  // namespace

std::vector<TrainingScenario> Scenarios(uint64_t seed) {
  // Whatever its batch: a slow disk or network.
  TrainingScenario far = Make(
      "one far", [](double u, uint32_t worker, int64_t) { return kSeconds * Jitter(u) * (worker == 0 ? 4 : 1); }, seed);
  far.fixed_share = 1;
  return {
      Make(
          "equal", [](double u, uint32_t, int64_t) { return kSeconds * Jitter(u); }, seed),
      Make(
          "exponential", [](double u, uint32_t, int64_t) { return kSeconds * (0.5 - 0.5 * std::log(u)); }, seed),
      Make(
          "pareto 2.5", [](double u, uint32_t, int64_t) { return Pareto(u, 2.5); }, seed),
      Make(
          "pareto 1.5", [](double u, uint32_t, int64_t) { return Pareto(u, 1.5); }, seed),
      Make(
          "bimodal", [](double u, uint32_t, int64_t) { return kSeconds * (u < 1.0 / kWorkers ? 6 : Jitter(u)); }, seed),
      Make(
          "one slow", [](double u, uint32_t worker, int64_t) { return kSeconds * Jitter(u) * (worker == 0 ? 4 : 1); },
          seed),
      Make(
          "half slow",
          [](double u, uint32_t worker, int64_t) { return kSeconds * Jitter(u) * (worker < kWorkers / 2 ? 2 : 1); },
          seed),
      // One after another is slow for 100 steps.
      Make(
          "episodes",
          [](double u, uint32_t worker, int64_t step) {
            return kSeconds * Jitter(u) * (step / 100 % (2 * kWorkers) == worker ? 4 : 1);
          },
          seed),
      // Twice as in LB-BSP's example.
      Make(
          "speeds 1, 1, 2, 3",
          [](double u, uint32_t worker, int64_t) {
            return kSeconds * Jitter(u) * 3 / std::array{1, 1, 2, 3}[worker % 4];
          },
          seed),
      far,
  };
}

TrainingScenario ScenarioNamed(const std::string& name, uint64_t seed) {
  for (const TrainingScenario& scenario : Scenarios(seed)) {
    if (scenario.name == name) return scenario;
  }
  std::abort();
}

TrainingScenario DistantServers(double overhead_seconds, uint64_t seed) {
  TrainingScenario scenario = ScenarioNamed("equal", seed);
  scenario.name = absl::StrFormat("servers %g ms away and back", overhead_seconds * 1000);
  scenario.overhead_seconds = overhead_seconds;
  scenario.max_steps = 10000;
  scenario.epochs = 30;
  scenario.schedule.set_unit(v1::LearningRateSchedule::EPOCHS);
  scenario.schedule.mutable_step()->set_interval(10);
  scenario.schedule.mutable_step()->set_factor(0.5);
  return scenario;
}

TrainingScenario DistantOwners(double overhead_seconds, uint64_t seed) {
  TrainingScenario scenario = DistantServers(overhead_seconds, seed);
  scenario.epochs = 0;
  scenario.schedule.Clear();
  scenario.difference = 0.5;
  scenario.distance = 3;
  return scenario;
}

v1::ConsistencyConfig Rules(v1::Mode mode, uint32_t quorum) {
  v1::ConsistencyConfig rules;
  rules.set_mode(mode);
  rules.set_quorum(quorum);
  return rules;
}

v1::ConsistencyConfig QuorumRules() {
  v1::ConsistencyConfig rules = Rules(v1::SYNC);
  rules.set_policy(v1::ConsistencyConfig::QUORUM);
  rules.mutable_policy_pace()->set_window_seconds(1);
  return rules;
}

v1::ConsistencyConfig SyncThenAsyncRules(double share) {
  v1::ConsistencyConfig rules = Rules(v1::SYNC);
  rules.set_policy(v1::ConsistencyConfig::SYNC_THEN_ASYNC);
  rules.mutable_policy_pace()->set_window_seconds(1);
  rules.mutable_sync_then_async()->set_share(share);
  return rules;
}

v1::ConsistencyConfig MeasuringRules(v1::ConsistencyConfig::Policy policy, v1::Mode mode, int64_t staleness_bound) {
  v1::ConsistencyConfig rules = Rules(mode);
  rules.set_staleness_bound(staleness_bound);
  rules.set_policy(policy);
  rules.mutable_policy_pace()->set_window_seconds(1);
  return rules;
}

v1::ConsistencyConfig AdaCommRules() {
  v1::ConsistencyConfig rules = MeasuringRules(v1::ConsistencyConfig::ADACOMM);
  rules.set_sync_every(16);
  rules.mutable_adacomm()->set_interval_windows(3);
  return rules;
}

v1::ConsistencyConfig StalenessBudgetRules(v1::Mode mode, double budget) {
  v1::ConsistencyConfig rules = MeasuringRules(v1::ConsistencyConfig::STALENESS_BUDGET, mode);
  rules.mutable_staleness_budget()->set_budget(budget);
  return rules;
}

TrainingScenario WithRateOf(TrainingScenario scenario, v1::Mode mode, uint32_t quorum) {
  v1::JobConfig config;
  config.mutable_cluster()->set_workers(scenario.workers);
  *config.mutable_consistency() = Rules(v1::SYNC);
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  scenario.learning_rate *= LearningRateRule(config, mode, quorum);
  return scenario;
}

}  // namespace rubato::coordinator
