#include "cli/launch/restart_policy.h"

namespace rubato {

std::optional<absl::Duration> RestartPolicy::OnLost(const v1::TaskId& task, absl::Time now) {
  std::deque<absl::Time>& lost = lost_[{task.role(), task.index()}];
  while (!lost.empty() && now - lost.front() > options_.window) lost.pop_front();
  const int times = static_cast<int>(lost.size());
  if (times >= options_.restarts_max) return std::nullopt;
  lost.push_back(now);
  absl::Duration delay = times == 0 ? absl::ZeroDuration() : options_.backoff;
  for (int i = 1; i < times; ++i) delay *= 2;
  return delay;
}

}  // namespace rubato
