#ifndef RUBATO_CLI_CAPACITY_EXCHANGE_H_
#define RUBATO_CLI_CAPACITY_EXCHANGE_H_

#include <cstdint>

#include "cli/capacity/event_queue.h"
#include "proto/parameter_server.pb.h"
#include "worker/ps_client/step_machine.h"

namespace rubato::capacity {

// What a worker's step is spent on, in virtual time.
struct StepParts {
  SimTime computing = 0;  // And sleeping, and waiting for a processor.
  SimTime barrier = 0;    // For the steps of others, as the plan wants it.
  SimTime network = 0;    // Links and transport.
  SimTime server = 0;     // A partition's queue and work.
  // Of network and server: for its turn.
  SimTime queued = 0;

  SimTime total() const { return computing + barrier + network + server; }
  StepParts& operator+=(const StepParts& other);
};

// A batch's request and its answer. A worker has one for each batch, which is used again for each request.
struct Exchange {
  worker::StepMachine::Request request;
  v1::ExchangeReply::Outcome outcome = v1::ExchangeReply::OUTCOME_UNSPECIFIED;
  // MOVED.
  int64_t next_step = 0;
  // Of the pushed gradients when they were applied, the largest of the chunks; -1: nothing was applied.
  int64_t staleness = -1;

  // In this order. The worker sends it.
  SimTime sent = 0;
  // It is at the partition, whose turn it waits for until it is taken.
  SimTime arrived = 0;
  SimTime taken = 0;
  // What it waited for under the plan is there.
  SimTime released = 0;
  // The answer is given to the transport.
  SimTime left = 0;
  // The weights are at the worker.
  SimTime stored = 0;
  // Of the two ways: waiting for threads and links.
  SimTime network_queue = 0;
};

// What somebody who waited for this exchange from `since` until its answer was stored has waited for. Pure.
StepParts DivideWait(const Exchange& exchange, SimTime since);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_EXCHANGE_H_
