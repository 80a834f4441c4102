#include "client/sidecar/stretch.h"

#include "common/straggler/sleep_unless.h"

namespace rubato::client {

void Stretch(Clock* clock, absl::Time begin, double factor, const std::function<bool()>& ends) {
  if (factor > 1) SleepUnless(ends, (clock->Now() - begin) * (factor - 1), clock);
}

}  // namespace rubato::client
