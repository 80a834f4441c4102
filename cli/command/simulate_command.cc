#include <memory>

#include "cli/command/commands.h"
#include "cli/launch/stop_signals.h"
#include "common/status.h"
#include "tests/simulation/run_simulation.h"

namespace rubato {
namespace {

// Until it is done or the process is asked to stop.
absl::Status Simulate(simulation::SimulationOptions options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<StopSignals> signals, StopSignals::Create());
  options.progress = environment.err;
  options.clock = environment.clock;
  options.stop = [&signals] { return signals->Take(); };
  return simulation::RunSimulation(options, *environment.out);
}

}  // namespace

void AddSimulateCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command =
      app->add_subcommand("simulate", "Run the consistency rules through simulated faults and check the guarantees");
  auto options = std::make_shared<simulation::SimulationOptions>();
  CLI::Option* replay = command->add_option("--seed", options->first_seed, "Run this seed alone and show its trace");
  command->add_option("--first-seed", options->first_seed, "The first seed")->capture_default_str()->excludes(replay);
  command->add_option("--seeds", options->seeds, "How many seeds")->capture_default_str()->excludes(replay);
  command->add_option("--trace-lines", options->trace_lines, "Lines of the trace to show")->capture_default_str();
  command->callback([options, replay, environment, exit_code] {
    if (replay->count() > 0) options->seeds = 1;
    absl::Status status = Simulate(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "simulate", status);
  });
}

}  // namespace rubato
