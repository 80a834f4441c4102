#include "tests/simulation/run_simulation.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "tests/simulation/simulation.h"

namespace rubato::simulation {
namespace {

void WriteTrace(const RunResult& result, std::ostream& out) {
  for (const std::string& line : result.trace) out << line << "\n";
}

// Tells now and then how many runs are done.
class ProgressLines {
 public:
  explicit ProgressLines(const SimulationOptions& options) : options_(options) {
    if (options_.progress != nullptr) begin_ = last_ = options_.clock->Now();
  }

  void RunEnds(int64_t done) {
    if (options_.progress == nullptr || done == options_.seeds) return;
    const absl::Time now = options_.clock->Now();
    if (now - last_ < options_.progress_interval) return;
    last_ = now;
    const absl::Duration left = (now - begin_) * (static_cast<double>(options_.seeds - done) / done);
    *options_.progress << done << " of " << options_.seeds << " runs, no violation, "
                       << absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))) << " left" << std::endl;
  }

 private:
  const SimulationOptions& options_;
  absl::Time begin_, last_;
};

// What the runs came to.
struct Totals {
  int64_t runs = 0;
  int64_t events = 0;
  int64_t steps = 0;
  int64_t plans = 0;

  void Add(const RunResult& result) {
    ++runs;
    events += result.events;
    steps += result.steps;
    plans += result.plans;
  }
  std::string Text() const {
    return absl::StrCat(runs, " runs, ", events, " events, ", steps, " steps, ", plans,
                        " plans: I1 to I5, I7 and I8 held");
  }
};

// Runs `seed` and adds it to the totals. Internal, told in `out` with all that replays it: an invariant was broken.
absl::Status RunSeed(const SimulationOptions& options, uint64_t seed, std::ostream& out, Totals* totals) {
  RunOptions run;
  run.seed = seed;
  run.keep_trace = options.seeds == 1 ? options.trace_lines : 0;
  RunResult result = RunOnce(run);
  if (!result.violation.empty()) {
    run.keep_trace = options.trace_lines;
    if (options.seeds > 1) result = RunOnce(run);  // The same again, with its trace.
    WriteTrace(result, out);
    out << result.scenario << "\n" << result.violation << "\nreplay with --seed=" << seed << "\n";
    return absl::InternalError(absl::StrCat("seed ", seed, ": ", result.violation));
  }
  if (options.seeds == 1) {
    WriteTrace(result, out);
    out << result.scenario << "\n";
  }
  totals->Add(result);
  if (options.coverage != nullptr) options.coverage->Add(result.coverage);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunSimulation(const SimulationOptions& options, std::ostream& out) {
  if (options.seeds < 1) return absl::InvalidArgumentError(absl::StrCat("seeds: ", options.seeds, "; at least 1"));
  ProgressLines progress(options);
  Totals totals;
  while (totals.runs < options.seeds) {
    const uint64_t seed = options.first_seed + static_cast<uint64_t>(totals.runs);
    if (options.stop && options.stop()) {
      out << "stopped after " << totals.Text() << "; go on with --first-seed=" << seed << "\n";
      return absl::CancelledError(absl::StrCat("stopped after ", totals.runs, " of ", options.seeds, " runs"));
    }
    RUBATO_RETURN_IF_ERROR(RunSeed(options, seed, out, &totals));
    progress.RunEnds(totals.runs);
  }
  out << totals.Text() << "\n";
  return absl::OkStatus();
}

}  // namespace rubato::simulation
