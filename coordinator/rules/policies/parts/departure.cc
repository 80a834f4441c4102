#include "coordinator/rules/policies/parts/departure.h"

#include "absl/strings/str_cat.h"
#include "coordinator/rules/policies/parts/memory_error.h"
#include "coordinator/rules/policies/parts/step_order.h"

namespace rubato::coordinator {

bool Departure::WindowEnds(int64_t step, double seconds, uint64_t generation, std::optional<double> loss) {
  const bool ends = pace_.WindowEnds(step, seconds, generation);
  if (ends) band_.Add(loss);
  return ends;
}

bool Departure::IsToLook(int64_t step, bool window_ends) {
  if (!window_ends && step < looked_at_ + static_cast<int64_t>(kStepsToJudge)) return false;
  looked_at_ = step;
  return true;
}

void Departure::Leave() {
  state_ = kAway;
  band_.Freeze();
}

bool Departure::Returns() {
  if (!band_.left()) return false;
  state_ = kBack;
  return true;
}

absl::Status Departure::Restore(absl::string_view memory) {
  const char state = memory.empty() ? kBefore : memory.front();
  if (memory.size() > 1 || (state != kBefore && state != kAway && state != kBack)) {
    const auto name = [](char c) { return std::string(1, c); };
    return MemoryError(policy_, memory, absl::StrCat(name(kBefore), ", ", name(kAway), " or ", name(kBack)));
  }
  state_ = state;
  if (is_away()) band_.Freeze();
  return absl::OkStatus();
}

}  // namespace rubato::coordinator
