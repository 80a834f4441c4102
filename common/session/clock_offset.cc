#include "common/session/clock_offset.h"

#include <algorithm>

namespace rubato {

void ClockOffset::Add(absl::Time sent, absl::Time received, absl::Time there) {
  if (received < sent) return;
  const absl::Duration half = (received - sent) / 2;
  latest_.push_back({there - (sent + half), half});
  if (latest_.size() > kLatest) latest_.pop_front();
}

std::optional<ClockOffset::Estimate> ClockOffset::best() const {
  if (latest_.empty()) return std::nullopt;
  return *std::min_element(latest_.begin(), latest_.end(),
                           [](const Estimate& a, const Estimate& b) { return a.error < b.error; });
}

}  // namespace rubato
