#ifndef RUBATO_CLI_REPORT_TUNING_H_
#define RUBATO_CLI_REPORT_TUNING_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/report/run_summary.h"
#include "cli/report/target.h"

namespace rubato {

// A run with one of the learning rates that were tried.
struct TuningRun {
  double learning_rate = 0;
  RunSummary summary;
};

// What was tried for one of the things that are compared, before the comparison, with a seed that it does not use.
struct Tuning {
  // As ComparedMode.name.
  std::string mode;
  // In order of their rates.
  std::vector<TuningRun> runs;
  // Of the best run; absent when none ended without an error.
  std::optional<size_t> best;

  // The best rate is the lowest or the highest that was tried, so that a better one may be beyond it.
  bool at_edge() const { return best.has_value() && (*best == 0 || *best + 1 == runs.size()); }
};

// What is tried in the place of a job's learning rate: each as many for everything that is compared.
std::vector<double> RatesToTry(double learning_rate);

// The index of the best run: of those that reached the target the first to do so; if none did, or there is no target,
// the one that is best by the target's metric, or else the first of kMetrics that it has, or else the lowest loss.
// Pure.
std::optional<size_t> BestOf(const std::vector<TuningRun>& runs, const Target& target);

// "sync: learning rate 0.1 of 0.025, 0.05, 0.1, 0.2, 0.4", with a warning if the best is at the edge.
std::string TuningText(const Tuning& tuning);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_TUNING_H_
