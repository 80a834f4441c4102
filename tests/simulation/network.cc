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

void Network::Send(std::function<void()> deliver) {
  if (!healed()) {
    if (random_.Uniform() < scenario_->loss) return;
    if (random_.Uniform() < scenario_->duplication) queue_->After(Delay(), deliver);
  }
  queue_->After(Delay(), std::move(deliver));
}

}  // namespace rubato::simulation
