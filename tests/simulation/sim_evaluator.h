#ifndef RUBATO_TESTS_SIMULATION_SIM_EVALUATOR_H_
#define RUBATO_TESTS_SIMULATION_SIM_EVALUATOR_H_

#include <cstdint>
#include <optional>

#include "tests/simulation/chunk_groups.h"
#include "tests/simulation/row_message.h"
#include "tests/simulation/server_directory.h"
#include "tests/simulation/sim_server.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {

// Asks for snapshots now and then, in SYNC for those of a step a little ahead, and for rows as they are. What it gets
// is judged by the oracle. Not thread-safe.
class SimEvaluator {
 public:
  // Both must outlive it.
  SimEvaluator(World* world, ServerDirectory* servers);

 private:
  void Evaluate();
  // With what the message says of rows, if it is about some.
  void Ask(ChunkGroup group, std::optional<RowMessage> rows, int64_t at_step);

  World* const world_;
  ServerDirectory* const servers_;
  const v1::TaskId task_;
  int64_t evaluations_ = 0;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_EVALUATOR_H_
