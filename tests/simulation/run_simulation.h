#ifndef RUBATO_TESTS_SIMULATION_RUN_SIMULATION_H_
#define RUBATO_TESTS_SIMULATION_RUN_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "tests/simulation/coverage.h"

namespace rubato::simulation {

struct SimulationOptions {
  uint64_t first_seed = 1;
  // Seeds first_seed, first_seed + 1, ...; at least 1.
  int64_t seeds = 1000;
  // Lines of the trace that are shown of a run that failed, and of the only run if `seeds` is 1; 0 for none.
  size_t trace_lines = 200;
  // Gets a line about how far it is, with the first run that ends `progress_interval` after the one before. Null:
  // nobody is told.
  std::ostream* progress = nullptr;
  absl::Duration progress_interval = absl::Seconds(5);
  // Required if there is `progress`.
  const Clock* clock = nullptr;
  // What the runs reached is added to it. Null: nobody asks.
  Coverage* coverage = nullptr;
  // Looked at before each run: whether to end with those that were run. Empty: never.
  std::function<bool()> stop = {};
};

// Runs the seeds one after another and writes to `out` what happens: one summary, also of what was run until `stop`,
// or, for the first run that breaks an invariant, which one, how, the seed that replays it and the end of its trace.
// InvalidArgument: seeds is under 1. Internal: an invariant was broken. Cancelled: `stop` said so; no invariant was
// broken until then.
absl::Status RunSimulation(const SimulationOptions& options, std::ostream& out);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_RUN_SIMULATION_H_
