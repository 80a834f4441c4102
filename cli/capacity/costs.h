#ifndef RUBATO_CLI_CAPACITY_COSTS_H_
#define RUBATO_CLI_CAPACITY_COSTS_H_

#include <cstdint>
#include <vector>

#include "cli/capacity/event_queue.h"

namespace rubato::capacity {

// A time that is linear in what it is spent on, in seconds. None of its terms is under 0.
struct LinearCost {
  double fixed = 0;
  double per_chunk = 0;
  double per_byte = 0;

  SimTime Of(int64_t chunks, int64_t bytes) const {
    return FromSeconds(fixed + per_chunk * static_cast<double>(chunks) + per_byte * static_cast<double>(bytes));
  }
};

// An update of one chunk: reduced from contributions of so many bytes each, and applied to its weights.
struct UpdateCost {
  double fixed = 0;
  double per_byte = 0;              // Of the chunk, once.
  double per_contributed_byte = 0;  // Of the chunk, for each contribution.

  SimTime Of(int64_t bytes, int64_t contributions) const {
    const auto size = static_cast<double>(bytes);
    return FromSeconds(fixed + (per_byte + per_contributed_byte * static_cast<double>(contributions)) * size);
  }
};

// What a partition's thread spends. Bytes are those of float32 weights.
struct ServerCosts {
  LinearCost receive;  // Of a request: until its rules begin.
  LinearCost rules;    // Of a request: checks of its gradient, rules and update log, without updates.
  UpdateCost update;
  LinearCost answer;  // Of an answer: encoding it and giving it to the transport.
  LinearCost wake;    // Of an answer that has waited: trying it again.
};

// How long a worker works in one step, in seconds of processor time, and where in it weights are waited for and
// gradients are pushed. Layers are those of JobLayout::layers.
struct RecordedStep {
  double lead = 0;               // Before the first weights are waited for.
  std::vector<double> forward;   // By layer: from its weights to the next layer's.
  double pause = 0;              // Slept between forward and backward, because somebody has asked for it.
  std::vector<double> backward;  // By layer: until its gradients are pushed, from the layer after it on.
  double tail = 0;               // After the last push.
};

// All that a simulation knows of the time things take.
struct Costs {
  // Steps are drawn from these.
  std::vector<RecordedStep> steps;
  // Of a message at one of its ends: a task's transport thread, the system's calls, and waking who waits for it.
  LinearCost transport;
  ServerCosts server;
  // Of all that, the part for which a processor is needed, over 0, up to 1. The rest is latency: waking threads, and
  // processors that were idle. It counts where tasks share processors.
  double processor_share = 1;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_COSTS_H_
