#include "cli/capacity/simulated_worker.h"

#include <algorithm>
#include <utility>

namespace rubato::capacity {

using worker::StepMachine;

SimulatedWorker::SimulatedWorker(SimulatedCluster* cluster, uint32_t index, StepSource steps)
    : cluster_(*cluster), index_(index), steps_(std::move(steps)), machine_(cluster->layout.batches(), this) {}

void SimulatedWorker::Start() {
  machine_.Start(cluster_.layout.plan);
  BeginStep();
}

void SimulatedWorker::Send(const StepMachine::Request& request) {
  const uint64_t slot = cluster_.SlotOf(index_, request.batch);
  Exchange& exchange = cluster_.exchanges[slot];
  exchange = {.request = request, .sent = cluster_.queue.now()};
  const auto batch = static_cast<size_t>(request.batch);
  const bool pushes = request.kind == StepMachine::Kind::kPushPull;
  cluster_.network.Send({.from = &cluster_.workers[index_],
                         .to = &cluster_.servers[cluster_.layout.batching.batches[batch].server],
                         .bytes = pushes ? cluster_.layout.pushed_bytes[batch] : 0,
                         .target = cluster_.partition_targets[batch],
                         .what = slot,
                         .queued = &exchange.network_queue},
                        slot);
}

void SimulatedWorker::OnEvent(uint64_t what) {
  if (what != kComputed) return OnAnswer(what);
  computing_ = false;
  Advance();
}

void SimulatedWorker::OnAnswer(uint64_t slot) {
  Exchange& exchange = cluster_.exchanges[slot];
  exchange.stored = cluster_.queue.now();
  staleness_ = std::max(staleness_, exchange.staleness);
  if (!computing_) {
    parts_ += DivideWait(exchange, waits_since_);
    waits_since_ = exchange.stored;
  }
  v1::ExchangeReply reply;
  reply.set_outcome(exchange.outcome);
  if (exchange.outcome == v1::ExchangeReply::MOVED) {
    reply.set_next_step(exchange.next_step);
    *reply.mutable_plan() = cluster_.layout.plan;
  }
  // No plan but the first: nobody is sent away, and whatever is refused would be an error of the simulation's.
  const absl::Status status = machine_.OnReply(exchange.request.id, reply);
  if (!status.ok()) cluster_.Fail(status);
  if (!computing_) Advance();
}

void SimulatedWorker::BeginStep() {
  begun_ = cluster_.queue.now();
  parts_ = {};
  step_ = steps_.At(machine_.step());
  phase_ = Phase::kLead;
  Compute(step_.work->lead);
}

void SimulatedWorker::Compute(double seconds) {
  computing_ = true;
  const SimTime done = cluster_.Work(FromSeconds(seconds)).end;
  // By the processor time that it has used.
  const SimTime slept = FromSeconds(seconds * cluster_.costs.processor_share * (step_.factor - 1));
  cluster_.queue.At(done + slept, this, kComputed);
}

bool SimulatedWorker::IsThere(size_t layer) const {
  const std::vector<int>& needed = cluster_.layout.layers[layer].needed;
  return std::all_of(needed.begin(), needed.end(), [this](int batch) { return machine_.Have(batch); });
}

void SimulatedWorker::Advance() {
  switch (phase_) {
    case Phase::kLead:
      phase_ = Phase::kForward;
      layer_ = 0;
      waits_since_ = cluster_.queue.now();
      return AdvanceForward();
    case Phase::kForward:
      return AdvanceForward();
    case Phase::kPause:
      phase_ = Phase::kBackward;
      layer_ = cluster_.layout.layers.size();
      return AdvanceBackward();
    case Phase::kBackward:
      for (int batch : cluster_.layout.layers[layer_].due) machine_.Push(batch);
      return AdvanceBackward();
    case Phase::kTail:
      return EndStep();
  }
}

void SimulatedWorker::AdvanceForward() {
  if (machine_.moved()) {
    layer_ = 0;
    machine_.Restart();
    step_ = steps_.At(machine_.step());
  }
  const size_t layers = cluster_.layout.layers.size();
  double seconds = 0;
  for (; layer_ < layers && IsThere(layer_); ++layer_) seconds += step_.work->forward[layer_];
  if (seconds > 0) return Compute(seconds);
  waits_since_ = cluster_.queue.now();
  if (layer_ < layers || !machine_.complete()) return;
  machine_.BeginStep();
  phase_ = Phase::kPause;
  computing_ = true;
  cluster_.queue.At(cluster_.queue.now() + FromSeconds(step_.pause), this, kComputed);
}

void SimulatedWorker::AdvanceBackward() {
  double seconds = 0;
  while (layer_ > 0) {
    --layer_;
    seconds += step_.work->backward[layer_];
    if (!cluster_.layout.layers[layer_].due.empty()) return Compute(seconds);
  }
  phase_ = Phase::kTail;
  Compute(seconds + step_.work->tail);
}

void SimulatedWorker::EndStep() {
  parts_.computing = cluster_.queue.now() - begun_ - parts_.total();
  cluster_.observer->OnStep(index_, parts_, std::exchange(staleness_, -1));
  BeginStep();
}

}  // namespace rubato::capacity
