#ifndef RUBATO_TESTS_SIMULATION_NETWORK_H_
#define RUBATO_TESTS_SIMULATION_NETWORK_H_

#include <functional>

#include "common/random.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/scenario.h"

namespace rubato::simulation {

// Carries messages badly: harsher than the streams that it stands for, which lose only what is in flight when they
// break. Not thread-safe.
class Network {
 public:
  // Both must outlive it.
  Network(EventQueue* queue, const Scenario* scenario)
      : queue_(queue), scenario_(scenario), random_(scenario->seed, StreamId("network")) {}

  // Runs `deliver` never, once or twice, some time later.
  void Send(std::function<void()> deliver);

  bool healed() const { return queue_->Now() >= absl::UnixEpoch() + scenario_->heal_at; }

 private:
  absl::Duration Delay();
  absl::Duration DelayOfRepeat();

  EventQueue* const queue_;
  const Scenario* const scenario_;
  Random random_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_NETWORK_H_
