#ifndef RUBATO_CLI_CAPACITY_SIMULATED_WORKER_H_
#define RUBATO_CLI_CAPACITY_SIMULATED_WORKER_H_

#include <cstdint>

#include "cli/capacity/event_queue.h"
#include "cli/capacity/simulated_cluster.h"
#include "cli/capacity/step_source.h"
#include "worker/ps_client/step_machine.h"

namespace rubato::capacity {

// A worker: production's step protocol, and a step loop as Trainer has it: forward layer by layer as weights come, a
// pause, backward layer by layer, each batch pushed as soon as its last gradient is there. Answers are told of as
// events: their slot. Not thread-safe.
class SimulatedWorker : public EventTarget, private worker::StepMachine::Sink {
 public:
  // The cluster outlives it.
  SimulatedWorker(SimulatedCluster* cluster, uint32_t index, StepSource steps);

  // Asks for the first step.
  void Start();

  // The answer in this slot has come, or kComputed.
  void OnEvent(uint64_t what) override;

 private:
  static constexpr uint64_t kComputed = ~uint64_t{0};

  enum class Phase { kLead, kForward, kPause, kBackward, kTail };

  void Send(const worker::StepMachine::Request& request) override;
  void OnAnswer(uint64_t slot);
  void BeginStep();
  void EndStep();
  // Goes on with the step until it computes or waits.
  void Advance();
  void AdvanceForward();
  void AdvanceBackward();
  bool IsThere(size_t layer) const;
  // kComputed comes when that is done.
  void Compute(double seconds);

  SimulatedCluster& cluster_;
  const uint32_t index_;
  StepSource steps_;
  worker::StepMachine machine_;
  StepSource::Step step_;
  Phase phase_ = Phase::kLead;
  // kForward: the next to compute. kBackward: those from here on are computed.
  size_t layer_ = 0;
  bool computing_ = false;
  SimTime begun_ = 0;
  // Since when it waits for weights.
  SimTime waits_since_ = 0;
  StepParts parts_;
  int64_t staleness_ = -1;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_SIMULATED_WORKER_H_
