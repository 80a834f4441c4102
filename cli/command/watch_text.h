#ifndef RUBATO_CLI_COMMAND_WATCH_TEXT_H_
#define RUBATO_CLI_COMMAND_WATCH_TEXT_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// What a coordinator said, and when.
struct StatusReading {
  v1::JobStatus status;
  absl::Time at;
};

// A running job for a person who watches it: the plan, each worker's and server's step, speed, staleness, traffic and
// memory between the two readings, who waits for whom and for how long, who is silent, and the tasks' last problems.
// Without an earlier reading there are no rates. Pure.
std::string WatchText(const std::optional<StatusReading>& before, const StatusReading& now);

// The same in a line, and one more for each wait and each silent task: for a log. Pure.
std::string WatchLines(const StatusReading& now);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_WATCH_TEXT_H_
