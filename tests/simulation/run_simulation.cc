#include "tests/simulation/run_simulation.h"

#include "absl/strings/str_cat.h"
#include "tests/simulation/simulation.h"

namespace rubato::simulation {
namespace {

void WriteTrace(const RunResult& result, std::ostream& out) {
  for (const std::string& line : result.trace) out << line << "\n";
}

}  // namespace

absl::Status RunSimulation(const SimulationOptions& options, std::ostream& out) {
  if (options.seeds < 1) return absl::InvalidArgumentError(absl::StrCat("seeds: ", options.seeds, "; at least 1"));
  int64_t events = 0, steps = 0, plans = 0;
  for (int64_t i = 0; i < options.seeds; ++i) {
    RunOptions run;
    run.seed = options.first_seed + static_cast<uint64_t>(i);
    run.keep_trace = options.seeds == 1 ? options.trace_lines : 0;
    RunResult result = RunOnce(run);
    if (!result.violation.empty()) {
      run.keep_trace = options.trace_lines;
      if (options.seeds > 1) result = RunOnce(run);  // The same again, with its trace.
      WriteTrace(result, out);
      out << result.scenario << "\n" << result.violation << "\nreplay with --seed=" << run.seed << "\n";
      return absl::InternalError(absl::StrCat("seed ", run.seed, ": ", result.violation));
    }
    if (options.seeds == 1) {
      WriteTrace(result, out);
      out << result.scenario << "\n";
    }
    events += result.events;
    steps += result.steps;
    plans += result.plans;
  }
  out << options.seeds << " runs, " << events << " events, " << steps << " steps, " << plans
      << " plans: I1 to I5 held\n";
  return absl::OkStatus();
}

}  // namespace rubato::simulation
