#ifndef RUBATO_CLI_LAUNCH_SLOW_WORKERS_H_
#define RUBATO_CLI_LAUNCH_SLOW_WORKERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rubato {

// A worker that is slowed down on purpose, to see what a straggler does to a job.
struct SlowWorker {
  // None: all workers that have no entry of their own.
  std::optional<uint32_t> index;
  // As FormatStraggler writes it; empty: this one is not slowed down.
  std::string model;
};

// Parses "worker:1:x3" and "worker:*:sleep=30ms", each worker, and all workers, once. A worker's own model is instead
// of that of all, not beside it. Files of traces are read, so that a bad one is known before the job begins.
// InvalidArgument: malformed, no such worker, or the same one twice; errors of LoadStraggler.
absl::StatusOr<std::vector<SlowWorker>> ParseSlowWorkers(const std::vector<std::string>& texts, uint32_t workers);

// Empty for one that is not slowed down.
std::string SlowModelOf(uint32_t worker, const std::vector<SlowWorker>& slowed);

// "worker 1 x3, all others sleep=30ms"; empty for none.
std::string DescribeSlowWorkers(const std::vector<SlowWorker>& slowed);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_SLOW_WORKERS_H_
