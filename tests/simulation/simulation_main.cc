// Runs the simulation from the command line: simulation --seeds=1000 --first-seed=1, or --seed=7 to replay one.
#include <iostream>

#include "CLI/CLI.hpp"
#include "tests/simulation/run_simulation.h"

int main(int argc, char** argv) {
  rubato::simulation::SimulationOptions options;
  CLI::App app("Runs the consistency rules through simulated faults and checks the invariants I1 to I5.");
  auto* replay = app.add_option("--seed", options.first_seed, "run this seed alone and show its trace");
  app.add_option("--first-seed", options.first_seed, "the first seed")->excludes(replay);
  app.add_option("--seeds", options.seeds, "how many seeds")->excludes(replay);
  app.add_option("--trace-lines", options.trace_lines, "lines of the trace to show");
  CLI11_PARSE(app, argc, argv);
  if (replay->count() > 0) options.seeds = 1;
  absl::Status status = rubato::simulation::RunSimulation(options, std::cout);
  if (absl::IsInvalidArgument(status)) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : absl::IsInvalidArgument(status) ? 2 : 1;
}
