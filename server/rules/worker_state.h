#ifndef RUBATO_SERVER_RULES_WORKER_STATE_H_
#define RUBATO_SERVER_RULES_WORKER_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "server/rules/contribution.h"
#include "server/rules/worker_rows.h"

namespace rubato::server {

// What is known of one worker on one chunk, but for its clock. In one place, as a push needs all of it: two lines of
// memory.
struct alignas(32) WorkerOnChunk {
  // StepGate's: of a member of the plan in force.
  struct Progress {
    // Whether the step begun last has a push that is still to come.
    bool working = false;
    // Working on a step of the plan before; its clock is first_step - 1 until that push comes or it begins first_step.
    bool draining = false;
    // The highest step whose weights were handed out here; -1 for none.
    int64_t begun = -1;
  };
  // PushDeduper's: the last push that is done.
  struct Done {
    uint64_t incarnation = 0;
    // -1: there is none.
    int64_t step = -1;
    // The chunk's version before the step's update.
    int64_t applied_to = -1;
  };

  Progress progress;
  Done done;
  // SyncReducer's: to the step in collection.
  Contribution contribution;
};

// What is known of all workers on some chunks.
struct WorkersOnChunks {
  explicit WorkersOnChunks(size_t chunks)
      : workers(std::make_shared<WorkerRows<WorkerOnChunk>>(chunks)),
        clocks(std::make_shared<WorkerRows<int64_t>>(chunks)) {}

  std::shared_ptr<WorkerRows<WorkerOnChunk>> workers;
  // StepGate's: steps that are done, applied or skipped by a change of plan. Apart from the rest, as a heartbeat tells
  // everybody's.
  std::shared_ptr<WorkerRows<int64_t>> clocks;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_WORKER_STATE_H_
