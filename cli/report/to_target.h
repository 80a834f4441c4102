#ifndef RUBATO_CLI_REPORT_TO_TARGET_H_
#define RUBATO_CLI_REPORT_TO_TARGET_H_

#include <optional>

#include "cli/report/comparison.h"
#include "cli/report/statistics/survival.h"

namespace rubato {

// What a run spends until it reaches the target.
enum class Effort { kSeconds, kSamples, kUpdates };

// What the run spent until it reached the target, or in all, if it did not: then it is censored there. Absent if the
// record does not say.
std::optional<Duration> ToTarget(const RunSummary& run, Effort effort);

// Up to where all modes of the comparison can be compared, as of LatestHorizon.
double TargetHorizon(const Comparison& comparison, Effort effort);

struct ModeToTarget {
  int runs = 0;
  int reached = 0;
  // Of what the runs spent, up to the comparison's horizon, as of RestrictedMean; if all runs of all modes reached the
  // target it is their mean. Absent if no run's record says what it spent.
  std::optional<double> restricted_mean;
};
ModeToTarget ToTargetOfMode(const ComparedMode& mode, Effort effort, double horizon);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_TO_TARGET_H_
