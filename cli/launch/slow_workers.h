#ifndef RUBATO_CLI_LAUNCH_SLOW_WORKERS_H_
#define RUBATO_CLI_LAUNCH_SLOW_WORKERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rubato {

// A worker that computes `factor` times as slowly as it could, to see what a straggler does to a job.
struct SlowWorker {
  uint32_t index = 0;
  double factor = 1;
};

// Parses "worker:1:x3", one for each worker to slow down. InvalidArgument: malformed, factor outside [1, 1000], no such
// worker, or the same one twice.
absl::StatusOr<std::vector<SlowWorker>> ParseSlowWorkers(const std::vector<std::string>& texts, uint32_t workers);

// 1 for one that is not slowed down.
double SlowFactorOf(uint32_t worker, const std::vector<SlowWorker>& slowed);

// "worker 1 x3, worker 2 x1.5"; empty for none.
std::string DescribeSlowWorkers(const std::vector<SlowWorker>& slowed);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_SLOW_WORKERS_H_
