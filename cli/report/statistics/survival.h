#ifndef RUBATO_CLI_REPORT_STATISTICS_SURVIVAL_H_
#define RUBATO_CLI_REPORT_STATISTICS_SURVIVAL_H_

#include <vector>

namespace rubato {

// How long something took, in whatever unit. If it was not `reached`, it would have taken longer than `at`: censored.
struct Duration {
  double at = 0;
  bool reached = false;
};

// From `at` on, the share for which it takes longer still.
struct SurvivalStep {
  double at = 0;
  double share = 1;
};

// The Kaplan-Meier estimate (Kaplan and Meier 1958, "Nonparametric estimation from incomplete observations"): the steps
// of the share that has not reached it yet, which is 1 before the first. If something ends without having reached
// it, what is reached at the same time comes first. With `times`, duration i is there times[i] times; empty: each once.
std::vector<SurvivalStep> KaplanMeier(const std::vector<Duration>& durations, const std::vector<int>& times = {});

// The mean of min(duration, horizon): the area under those steps (Royston and Parmar 2013, "Restricted mean survival
// time"). The share stays what it is after the last step (Gill 1980), which is exact while the horizon is within
// LatestHorizon.
double RestrictedMean(const std::vector<SurvivalStep>& steps, double horizon);

// Up to where all `groups` can be compared: the smallest of their largest durations. A group whose largest duration is
// one that was reached is known to its end and does not count; if all are, it is the largest of them all, and
// restricted means are plain means. 0 without durations.
double LatestHorizon(const std::vector<std::vector<Duration>>& groups);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_STATISTICS_SURVIVAL_H_
