#ifndef RUBATO_TESTS_SIMULATION_WORLD_H_
#define RUBATO_TESTS_SIMULATION_WORLD_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "common/random.h"
#include "proto/coordinator.pb.h"
#include "proto/update_log.pb.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/network.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/trace.h"

namespace rubato::simulation {

// What all actors of one run share.
struct World {
  World(const Scenario& drawn, size_t keep_trace)
      : scenario(drawn),
        trace(&queue, keep_trace),
        network(&queue, &scenario),
        random(drawn.seed, StreamId("actors")) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  v1::TaskId NewTask(v1::TaskId::Role role, uint32_t index) {
    v1::TaskId task;
    task.set_role(role);
    task.set_index(index);
    task.set_incarnation(++last_incarnation);
    return task;
  }

  const Scenario scenario;
  EventQueue queue;
  Trace trace;
  Network network;
  Random random;
  Oracle oracle;
  // Sees every record of every update log.
  std::function<void(uint32_t partition, const v1::UpdateLogRecord&)> on_record;
  // Where the chunks are; empty until the job has started.
  std::vector<v1::ChunkPlacement> chunks;
  uint64_t last_incarnation = 0;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_WORLD_H_
