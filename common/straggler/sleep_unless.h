#ifndef RUBATO_COMMON_STRAGGLER_SLEEP_UNLESS_H_
#define RUBATO_COMMON_STRAGGLER_SLEEP_UNLESS_H_

#include <functional>

#include "absl/time/time.h"
#include "common/clock.h"

namespace rubato {

// Sleeps so long, but returns as soon as `ends`, which is asked before and a few times a second, says so.
void SleepUnless(const std::function<bool()>& ends, absl::Duration duration, Clock* clock);

}  // namespace rubato

#endif  // RUBATO_COMMON_STRAGGLER_SLEEP_UNLESS_H_
