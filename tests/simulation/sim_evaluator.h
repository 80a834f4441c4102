#ifndef RUBATO_TESTS_SIMULATION_SIM_EVALUATOR_H_
#define RUBATO_TESTS_SIMULATION_SIM_EVALUATOR_H_

#include "tests/simulation/chunk_groups.h"
#include "tests/simulation/server_directory.h"
#include "tests/simulation/sim_server.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {

// Asks for snapshots now and then, in SYNC for those of a step a little ahead. What it gets is judged by the oracle.
// Not thread-safe.
class SimEvaluator {
 public:
  // Both must outlive it.
  SimEvaluator(World* world, ServerDirectory* servers);

 private:
  void Evaluate();
  void Ask(ChunkGroup group, int64_t at_step);

  World* const world_;
  ServerDirectory* const servers_;
  const v1::TaskId task_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_EVALUATOR_H_
