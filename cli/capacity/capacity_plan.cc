#include "cli/capacity/capacity_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "cli/capacity/calibration.h"
#include "common/config/local_sgd.h"
#include "common/status.h"

namespace rubato::capacity {
namespace {

// Shares that are tried, in percent.
constexpr int kLeastShare = 10;
constexpr int kShareStep = 10;
// Of each worker, for each share.
constexpr int64_t kStepsToFit = 50;
// Part by which a run's rate differs from another of the same job.
constexpr double kChance = 0.005;

// What the model says of a calibration run, whose workers paused as they did.
absl::StatusOr<CapacityPlan::Check> CheckRun(const CalibrationRun& run, Costs costs, const PlanOptions& options,
                                             int64_t steps) {
  const std::vector<RecordedStep> drawn = std::exchange(costs.steps, {});
  for (size_t i = 0; i < std::max(drawn.size(), run.steps.size()); ++i) {
    costs.steps.push_back(drawn[i % drawn.size()]);
    costs.steps.back().pause = run.steps[i % run.steps.size()].pause;
  }
  RUBATO_ASSIGN_OR_RETURN(const SimulationResult result, Simulate({.layout = &run.layout,
                                                                   .costs = &costs,
                                                                   .in_place = run.in_place,
                                                                   .shared_processors = options.processors,
                                                                   .seed = options.seed,
                                                                   .steps = steps}));
  return CapacityPlan::Check{run.directory, run.workers(), run.worker_steps_per_second, result.worker_steps_per_second};
}

// Sum over the calibration runs of the squared relative errors of the model's rates.
absl::StatusOr<double> ErrorOf(const Costs& costs, const PlanOptions& options) {
  double error = 0;
  for (const CalibrationRun& run : options.runs) {
    RUBATO_ASSIGN_OR_RETURN(const CapacityPlan::Check check, CheckRun(run, costs, options, kStepsToFit));
    const double ratio = std::log(check.predicted_steps_per_second / check.measured_steps_per_second);
    error += ratio * ratio;
  }
  return error;
}

struct Shares {
  double transport = 1;
  double processor = 1;
};

Costs WithShares(Costs costs, const Shares& shares) {
  costs.transport.fixed *= shares.transport;
  costs.transport.per_byte *= shares.transport;
  costs.processor_share = shares.processor;
  return costs;
}

// What traces do not tell apart, by the rates of runs that differ in it. Messages in flight at the same time wait for
// each other at both ends, so what was recorded of one is more than it costs; and of recorded work a part is latency.
// Of the shares with which the model is as close to the runs' rates as it comes, but for chance, those that change
// least of what was recorded of messages, and then of work.
absl::StatusOr<Shares> FitShares(const Costs& costs, const PlanOptions& options) {
  std::vector<std::pair<Shares, double>> tried;
  double least = std::numeric_limits<double>::infinity();
  for (int transport = 100; transport >= kLeastShare; transport -= kShareStep) {
    for (int processor = 100; processor >= kLeastShare; processor -= kShareStep) {
      const Shares shares = {transport / 100.0, processor / 100.0};
      RUBATO_ASSIGN_OR_RETURN(const double error, ErrorOf(WithShares(costs, shares), options));
      tried.emplace_back(shares, error);
      least = std::min(least, error);
      if (options.processors == 0) break;
    }
  }
  const double good = least + kChance * kChance * static_cast<double>(options.runs.size());
  return std::find_if(tried.begin(), tried.end(), [good](const auto& one) { return one.second <= good; })->first;
}

// A worker has a thread for each connection, and a machine like the calibration's for them.
int WorkerThreads(const PlanOptions& options) {
  const v1::ClusterConfig& cluster = options.config.cluster();
  const auto connections = static_cast<int>(cluster.servers() * cluster.connections_per_server());
  return options.processors > 0 ? std::min(connections, options.processors) : connections;
}

int64_t Sum(const std::vector<int64_t>& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

void AddNotes(const PlanOptions& options, bool in_place, std::vector<std::string>* notes) {
  const bool shared =
      std::any_of(options.runs.begin(), options.runs.end(), [](const auto& run) { return run.in_place; });
  if (shared && !in_place) {
    notes->push_back(
        "Calibrated through shared memory: what bytes cost over TCP is not in it; a run with "
        "cluster.shared_memory=OFF has it");
  }
  if (options.config.consistency().schedule_size() > 0 ||
      options.config.consistency().policy() > v1::ConsistencyConfig::SCHEDULE) {
    notes->push_back("Planned for the mode that the job starts in; the schedule or policy is not followed");
  }
}

}  // namespace

absl::StatusOr<CapacityPlan> PlanCapacity(const PlanOptions& options) {
  RUBATO_ASSIGN_OR_RETURN(Calibration calibration, Calibrate(options.runs, options.config));
  CapacityPlan plan;
  plan.config = options.config;
  plan.notes = std::move(calibration.notes);
  RUBATO_ASSIGN_OR_RETURN(const Shares shares, FitShares(calibration.costs, options));
  calibration.costs = WithShares(calibration.costs, shares);
  plan.transport_share = shares.transport;
  plan.processor_share = shares.processor;
  for (const CalibrationRun& run : options.runs) {
    RUBATO_ASSIGN_OR_RETURN(CapacityPlan::Check check, CheckRun(run, calibration.costs, options, /*steps=*/0));
    plan.checks.push_back(std::move(check));
  }
  const bool in_place =
      options.one_host && options.config.cluster().shared_memory() != v1::ClusterConfig::OFF &&
      std::all_of(options.runs.begin(), options.runs.end(), [](const auto& run) { return run.in_place; });
  AddNotes(options, in_place, &plan.notes);
  RUBATO_ASSIGN_OR_RETURN(const JobLayout layout, MakeJobLayout(options.config, in_place));
  RUBATO_ASSIGN_OR_RETURN(plan.result, Simulate({.layout = &layout,
                                                 .costs = &calibration.costs,
                                                 .stragglers = options.stragglers,
                                                 .worker_links = options.links.workers,
                                                 .server_links = options.links.servers,
                                                 .in_place = in_place,
                                                 .shared_processors = options.one_host ? options.processors : 0,
                                                 .worker_threads = WorkerThreads(options),
                                                 .seed = options.seed,
                                                 .steps = options.steps}));
  plan.messages_per_step = layout.batches();
  plan.pushed_bytes = Sum(layout.pushed_bytes);
  plan.pulled_bytes = Sum(layout.pulled_bytes);
  plan.samples_per_second = plan.result.contributions_per_second * static_cast<double>(ExamplesPerStep(options.config));
  plan.bottleneck = FindBottleneck(layout, plan.result);
  plan.saturation = FindSaturation(layout, plan.result);
  return plan;
}

}  // namespace rubato::capacity
