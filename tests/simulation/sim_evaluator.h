#ifndef RUBATO_TESTS_SIMULATION_SIM_EVALUATOR_H_
#define RUBATO_TESTS_SIMULATION_SIM_EVALUATOR_H_

#include <cstdint>
#include <vector>

#include "tests/simulation/sim_server.h"
#include "tests/simulation/sim_worker.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {

// Asks for snapshots now and then, in SYNC for those of a step a little ahead. What it gets is judged by the oracle.
// Not thread-safe.
class SimEvaluator {
 public:
  // `world` and the servers must outlive it.
  SimEvaluator(World* world, std::vector<SimServer*> servers, std::vector<ChunkGroup> groups);

 private:
  void Evaluate();
  void Ask(const ChunkGroup& group, int64_t at_step);

  World* const world_;
  const std::vector<SimServer*> servers_;
  const std::vector<ChunkGroup> groups_;
  const v1::TaskId task_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_EVALUATOR_H_
