#include "common/straggler/sleep_unless.h"

#include <algorithm>

namespace rubato {

void SleepUnless(const std::function<bool()>& ends, absl::Duration duration, Clock* clock) {
  constexpr absl::Duration kPoll = absl::Milliseconds(200);
  if (duration <= absl::ZeroDuration()) return;
  const absl::Time end = clock->Now() + duration;
  for (absl::Time now = clock->Now(); now < end && !ends(); now = clock->Now()) {
    clock->Sleep(std::min(end - now, kPoll));
  }
}

}  // namespace rubato
