#include "tests/simulation/network.h"

#include <utility>

namespace rubato::simulation {

absl::Duration Network::Delay() {
  absl::Duration delay = scenario_->latency * (2 * random_.Uniform());
  if (!healed() && random_.Uniform() < scenario_->straggling) {
    delay += scenario_->straggler_latency * random_.Uniform();
  }
  return delay;
}

// What comes twice comes again at once, or when nobody expects it any more.
absl::Duration Network::DelayOfRepeat() {
  return random_.Below(2) == 0 ? absl::ZeroDuration() : scenario_->straggler_latency * random_.Uniform();
}

void Network::Send(std::function<void()> deliver) {
  if (!healed()) {
    if (random_.Uniform() < scenario_->loss) return;
    if (random_.Uniform() < scenario_->duplication) queue_->After(Delay() + DelayOfRepeat(), deliver);
  }
  queue_->After(Delay(), std::move(deliver));
}

}  // namespace rubato::simulation
