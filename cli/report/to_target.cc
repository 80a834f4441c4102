#include "cli/report/to_target.h"

#include <vector>

namespace rubato {
namespace {

struct Spent {
  std::optional<double> to_target;
  std::optional<double> in_all;
};

Spent SpentBy(const RunSummary& run, Effort effort) {
  switch (effort) {
    case Effort::kSeconds:
      return {run.seconds_to_target, run.seconds};
    case Effort::kSamples:
      return {run.samples_to_target, run.samples};
    case Effort::kUpdates:
      return {run.updates_to_target, run.updates};
  }
  return {};
}

std::vector<Duration> DurationsOf(const ComparedMode& mode, Effort effort) {
  std::vector<Duration> durations;
  for (const ComparedRun& run : mode.runs) {
    if (const std::optional<Duration> duration = ToTarget(run.summary, effort)) durations.push_back(*duration);
  }
  return durations;
}

}  // namespace

std::optional<Duration> ToTarget(const RunSummary& run, Effort effort) {
  const Spent spent = SpentBy(run, effort);
  const bool reached = run.seconds_to_target.has_value();
  const std::optional<double>& at = reached ? spent.to_target : spent.in_all;
  if (!at.has_value() || *at <= 0) return std::nullopt;
  return Duration{*at, reached};
}

double TargetHorizon(const Comparison& comparison, Effort effort) {
  std::vector<std::vector<Duration>> groups;
  for (const ComparedMode& mode : comparison.modes) groups.push_back(DurationsOf(mode, effort));
  return LatestHorizon(groups);
}

ModeToTarget ToTargetOfMode(const ComparedMode& mode, Effort effort, double horizon) {
  ModeToTarget result;
  result.runs = static_cast<int>(mode.runs.size());
  for (const ComparedRun& run : mode.runs) result.reached += run.summary.seconds_to_target.has_value() ? 1 : 0;
  const std::vector<Duration> durations = DurationsOf(mode, effort);
  if (!durations.empty()) result.restricted_mean = RestrictedMean(KaplanMeier(durations), horizon);
  return result;
}

}  // namespace rubato
