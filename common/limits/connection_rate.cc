#include "common/limits/connection_rate.h"

namespace rubato {

bool ConnectionRate::Take(absl::string_view host, absl::Time now) {
  auto found = hosts_.find(host);
  if (found == hosts_.end()) {
    if (hosts_.size() >= kMostHosts) {
      for (auto next = hosts_.begin(); next != hosts_.end();) {
        next = now - next->second.begin >= period_ ? hosts_.erase(next) : std::next(next);
      }
    }
    if (hosts_.size() >= kMostHosts) return false;
    found = hosts_.emplace(std::string(host), Host{.begin = now}).first;
  }
  Host& known = found->second;
  if (now - known.begin >= period_) known = {.begin = now};
  if (known.taken >= most_) return false;
  ++known.taken;
  return true;
}

}  // namespace rubato
