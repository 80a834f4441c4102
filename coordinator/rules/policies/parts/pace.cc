#include "coordinator/rules/policies/parts/pace.h"

namespace rubato::coordinator {

bool Pace::WindowEnds(int64_t step, double seconds, uint64_t generation) {
  const bool ends = begun_ && generation == generation_ && step - begin_step_ >= options_.window_steps() &&
                    seconds - begin_seconds_ >= options_.window_seconds();
  if (ends || !begun_ || generation != generation_) {
    begun_ = true;
    generation_ = generation;
    begin_step_ = step;
    begin_seconds_ = seconds;
  }
  return ends;
}

bool Pace::Confirms(int direction, double gain) {
  if (rest_ > 0) {
    --rest_;
    return false;
  }
  agreeing_ = direction == direction_ ? agreeing_ + 1 : 1;
  direction_ = direction;
  const uint32_t needed = gain >= kClearGain ? 1 : options_.windows_agreeing();
  if (direction == 0 || agreeing_ < needed || changes_ >= options_.changes_max()) return false;
  Restore(changes_ + 1);
  return true;
}

void Pace::Restore(uint32_t changes) {
  changes_ = changes;
  rest_ = changes == 0 ? 0 : options_.windows_of_rest();
  direction_ = 0;
  agreeing_ = 0;
}

}  // namespace rubato::coordinator
