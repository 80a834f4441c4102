#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_SSP_REPLAY_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_SSP_REPLAY_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace rubato::coordinator {

// Of a job under SSP.
struct SspRun {
  // Of all workers.
  double steps_per_second = 0;
  // Updates between a step's begin and its push.
  double mean_staleness = 0;
};

inline constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

// What workers with these steps would do under SSP with a bound of 0 (SYNC, whose updates are counted as one each
// step) to kNoBound (ASYNC): the latest steps of each worker (as in MeanStepOrder) are replayed again and again, with
// `overhead` seconds added to each. REQUIRES: the same number of steps of each worker, over 0, in seconds of over 0.
// Pure.
SspRun ReplaySsp(const std::vector<std::vector<double>>& seconds, double overhead, int64_t bound);
// Its steps_per_second alone.
double SspStepsPerSecond(const std::vector<std::vector<double>>& seconds, double overhead, int64_t bound);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_SSP_REPLAY_H_
