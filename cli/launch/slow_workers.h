#ifndef RUBATO_CLI_LAUNCH_SLOW_WORKERS_H_
#define RUBATO_CLI_LAUNCH_SLOW_WORKERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rubato {

// Workers that are slowed down, or put behind slow network links, on purpose, to see what that does to a job.
struct SlowWorkers {
  struct Setting {
    // None: all workers that have no setting of their own.
    std::optional<uint32_t> index;
    std::string value;
  };

  // As FormatStraggler writes them; empty: this one is not slowed down.
  std::vector<Setting> models;
  // As FormatLink writes them; empty: this one's network is not slowed down.
  std::vector<Setting> networks;
};

// Parses the values of --slow, "worker:1:x3" and "worker:*:sleep=30ms", and of --network,
// "worker:1:latency=10ms,rate=100mbit": of each, a worker, and all workers, once. A worker's own setting is instead of
// that of all, not beside it. Files of traces are read, so that a bad one is known before the job begins.
// InvalidArgument: malformed, no such worker, or the same one twice; errors of LoadStraggler and ParseLink.
absl::StatusOr<SlowWorkers> ParseSlowWorkers(const std::vector<std::string>& slow,
                                             const std::vector<std::string>& network, uint32_t workers);

// The worker's own value, or that of all; empty if there is none.
std::string SettingOf(uint32_t worker, const std::vector<SlowWorkers::Setting>& settings);

// "worker 1 x3, all others sleep=30ms, worker 1 behind latency=10ms"; empty for none.
std::string DescribeSlowWorkers(const SlowWorkers& slowed);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_SLOW_WORKERS_H_
