#include "client/sidecar/stretch.h"

#include <algorithm>

namespace rubato::client {

void Stretch(Clock* clock, absl::Time begin, double factor, const std::function<bool()>& ends) {
  constexpr absl::Duration kPoll = absl::Milliseconds(200);
  if (factor <= 1) return;
  const absl::Time end = begin + (clock->Now() - begin) * factor;
  for (absl::Time now = clock->Now(); now < end && !ends(); now = clock->Now()) {
    clock->Sleep(std::min(end - now, kPoll));
  }
}

}  // namespace rubato::client
