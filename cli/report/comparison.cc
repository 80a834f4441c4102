#include "cli/report/comparison.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rubato {

absl::string_view AuditResultName(AuditResult result) {
  switch (result) {
    case AuditResult::kHeld:
      return "held";
    case AuditResult::kBroken:
      return "broken";
    case AuditResult::kNotLogged:
      break;
  }
  return "not logged";
}

RunSummary MeanOfMode(const ComparedMode& mode) {
  std::vector<RunSummary> summaries;
  for (const ComparedRun& run : mode.runs) summaries.push_back(run.summary);
  return MeanOfRuns(summaries);
}

AuditResult AuditOfMode(const ComparedMode& mode) {
  bool all_held = !mode.runs.empty();
  for (const ComparedRun& run : mode.runs) {
    if (run.audit == AuditResult::kBroken) return AuditResult::kBroken;
    all_held = all_held && run.audit == AuditResult::kHeld;
  }
  return all_held ? AuditResult::kHeld : AuditResult::kNotLogged;
}

std::vector<std::string> SkippedSteps(const ComparedMode& mode) {
  int64_t overflows = 0, non_finite = 0;
  for (const ComparedRun& run : mode.runs) {
    if (!run.record.end.has_value()) continue;
    overflows += static_cast<int64_t>(run.record.end->overflows());
    non_finite += static_cast<int64_t>(run.record.end->non_finite());
  }
  std::vector<std::string> skipped;
  if (overflows > 0) skipped.push_back(absl::StrCat(overflows, " steps skipped because gradients overflowed in FP16"));
  if (non_finite > 0) skipped.push_back(absl::StrCat(non_finite, " steps with a loss or gradient that was not finite"));
  return skipped;
}

std::vector<std::string> Rollbacks(const ComparedMode& mode) {
  std::vector<std::string> rollbacks;
  for (const ComparedRun& run : mode.runs) {
    for (const v1::RollbackLine& line : run.record.rollbacks) {
      const std::string where =
          line.step() > 0 ? absl::StrCat("step ", static_cast<int64_t>(line.step())) : "its beginning";
      rollbacks.push_back(absl::StrCat("went back to ", where, " (", line.reason(), ")"));
    }
  }
  return rollbacks;
}

bool AllReachedTarget(const Comparison& comparison) {
  if (!comparison.target.exists()) return true;
  for (const ComparedMode& mode : comparison.modes) {
    bool reached = std::all_of(mode.runs.begin(), mode.runs.end(),
                               [](const ComparedRun& run) { return run.summary.seconds_to_target.has_value(); });
    if (!reached) return false;
  }
  return true;
}

const v1::StartLine* FirstStart(const Comparison& comparison) {
  for (const ComparedMode& mode : comparison.modes) {
    for (const ComparedRun& run : mode.runs) {
      if (run.record.start.has_value()) return &*run.record.start;
    }
  }
  return nullptr;
}

bool IsRegression(const Comparison& comparison) {
  const v1::StartLine* start = FirstStart(comparison);
  return start != nullptr && start->loss() == v1::ModelConfig::MEAN_SQUARED_ERROR;
}

std::vector<Metric> MetricsOf(const Comparison& comparison) {
  const auto was_measured = [&](Metric metric) {
    return std::any_of(comparison.modes.begin(), comparison.modes.end(), [&](const ComparedMode& mode) {
      return std::any_of(mode.runs.begin(), mode.runs.end(),
                         [&](const ComparedRun& run) { return FinalValue(run.summary, metric).has_value(); });
    });
  };
  std::vector<Metric> metrics;
  if (comparison.target.exists()) metrics.push_back(comparison.target.metric);
  for (const Metric metric : kMetrics) {
    const bool is_first = comparison.target.exists() && metric == comparison.target.metric;
    if (!is_first && was_measured(metric)) metrics.push_back(metric);
  }
  if (metrics.empty()) metrics.push_back(IsRegression(comparison) ? Metric::kR2 : Metric::kAccuracy);
  return metrics;
}

bool HasEvaluations(const Comparison& comparison) {
  for (const ComparedMode& mode : comparison.modes) {
    for (const ComparedRun& run : mode.runs) {
      if (!run.record.evaluations.empty()) return true;
    }
  }
  return false;
}

bool HasExamples(const Comparison& comparison) {
  for (const ComparedMode& mode : comparison.modes) {
    for (const ComparedRun& run : mode.runs) {
      if (run.summary.examples_per_second > 0) return true;
    }
  }
  return false;
}

}  // namespace rubato
