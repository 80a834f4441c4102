#include "cli/capacity/step_source.h"

#include <algorithm>

#include "common/random.h"

namespace rubato::capacity {

StepSource::Step StepSource::At(int64_t step) {
  Random random(options_.seed, StreamId("capacity step", options_.worker, static_cast<uint64_t>(step)));
  Step drawn = {.work = &(*options_.steps)[random.Below(options_.steps->size())]};
  if (!options_.straggler.has_value()) {
    drawn.pause = drawn.work->pause;
    return drawn;
  }
  const StepDelay delay = options_.straggler->At(step);
  drawn.pause = absl::ToDoubleSeconds(delay.pause());
  // As Slowdown does: what computes cannot be made faster.
  drawn.factor = std::max(1.0, delay.factor);
  return drawn;
}

}  // namespace rubato::capacity
