#ifndef RUBATO_CLI_REPORT_AGAINST_BASELINE_H_
#define RUBATO_CLI_REPORT_AGAINST_BASELINE_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/report/comparison.h"
#include "cli/report/quantities.h"
#include "cli/report/statistics/paired_bootstrap.h"

namespace rubato {

// One mode against the baseline in one quantity, over pairs of runs with the same seed.
struct BaselineResult {
  std::string mode;
  Quantity quantity;
  int pairs = 0;
  // Seeds for which one of the two runs failed, or has no such number.
  int left_out = 0;
  // Of what leads to the target: runs of the pairs that missed it, up to where they are compared.
  int missed = 0;
  int baseline_missed = 0;
  std::optional<double> horizon;
  // The mean of differences; the geometric mean of ratios; of what leads to the target the ratio of restricted means.
  // All are absent under two pairs, and if neither mode ever reached the target.
  std::optional<double> estimate;
  std::optional<Interval> interval;
  // Two-sided; `p_holm` is adjusted for all modes that are compared in this quantity.
  std::optional<double> p;
  std::optional<double> p_holm;
  // Whether there are pairs enough for p_holm to be under 0.05 at all. If not, p says nothing, whatever it is.
  bool can_tell = false;
};

struct AgainstBaseline {
  std::string baseline;
  // The seeds of which the baseline has a run.
  int seeds = 0;
  // How many pairs it takes for a p under 0.05, with so many modes.
  int pairs_needed = 0;
  // By quantity, then by mode as in the comparison.
  std::vector<BaselineResult> results;
};

// Compares all modes with `comparison.baseline`; absent if there is only one. Of one seed there are no results.
std::optional<AgainstBaseline> CompareWithBaseline(const Comparison& comparison);

// What has to be said with the results: what is not shown and why, who was left out, who missed the target.
std::vector<std::string> NotesOn(const AgainstBaseline& against);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_AGAINST_BASELINE_H_
