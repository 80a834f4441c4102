#ifndef RUBATO_CLI_LAUNCH_RESTART_POLICY_H_
#define RUBATO_CLI_LAUNCH_RESTART_POLICY_H_

#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// When a lost task is started again: at once the first time, then after a delay that doubles, and not any more once it
// was lost too often within a while. What was long ago does not count. Pure, not thread-safe.
//
//   RestartPolicy policy({});
//   std::optional<absl::Duration> delay = policy.OnLost(task, now);
//   if (!delay.has_value()) ...  // A crash loop.
class RestartPolicy {
 public:
  struct Options {
    // A task is started again at most so often within any time of this length.
    int restarts_max = 5;
    absl::Duration window = absl::Seconds(60);
    // Before the second start again within the window; before each further one twice as long as before the last.
    absl::Duration backoff = absl::Milliseconds(500);
  };

  explicit RestartPolicy(Options options) : options_(options) {}

  // How long to wait before the task (its role and index) is started again; nothing: it was lost too often. `now` does
  // not go back.
  std::optional<absl::Duration> OnLost(const v1::TaskId& task, absl::Time now);

  const Options& options() const { return options_; }

 private:
  const Options options_;
  // By role and index: when each was lost and started again, within the last window.
  std::map<std::pair<int, uint32_t>, std::deque<absl::Time>> lost_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_RESTART_POLICY_H_
