#ifndef RUBATO_TESTS_SIMULATION_RUN_SIMULATION_H_
#define RUBATO_TESTS_SIMULATION_RUN_SIMULATION_H_

#include <cstdint>
#include <ostream>

#include "absl/status/status.h"

namespace rubato::simulation {

struct SimulationOptions {
  uint64_t first_seed = 1;
  // Seeds first_seed, first_seed + 1, ...; at least 1.
  int64_t seeds = 1000;
  // Lines of the trace that are shown of a run that failed, and of the only run where `seeds` is 1; 0 for none.
  size_t trace_lines = 200;
};

// Runs the seeds one after another and writes to `out` what happens: one summary or, for the first run that breaks an
// invariant, which one, how, the seed that replays it and the end of its trace. InvalidArgument: seeds is under 1.
// Internal: an invariant was broken.
absl::Status RunSimulation(const SimulationOptions& options, std::ostream& out);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_RUN_SIMULATION_H_
