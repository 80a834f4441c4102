#ifndef RUBATO_CLIENT_SIDECAR_STRETCH_H_
#define RUBATO_CLIENT_SIDECAR_STRETCH_H_

#include <functional>

#include "absl/time/time.h"
#include "common/clock.h"

namespace rubato::client {

// Waits until what began at `begin` has taken `factor` times as long as it has until now: a worker that is slowed down
// on purpose. Returns as soon as `ends`, which is asked a few times a second, says so.
void Stretch(Clock* clock, absl::Time begin, double factor, const std::function<bool()>& ends);

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_STRETCH_H_
