#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/command/commands.h"
#include "cli/command/run_directory.h"
#include "cli/replay/replay.h"
#include "common/status.h"
#include "kernels/backend_cuda.h"

namespace rubato {
namespace {

// If there is no terminal.
constexpr absl::Duration kTellEvery = absl::Seconds(5);

struct ReplayCommandOptions {
  ReplayOptions replay;
  bool overwrite = false;
};

void Print(const ReplayReport& report, const ReplayOptions& options, const Environment& environment) {
  *environment.out << absl::StrFormat("Replayed %d steps of %d workers, %d updates of %d chunks.\n", report.steps,
                                      report.members, report.updates, report.chunks);
  if (report.comparison.has_value()) {
    const WeightComparison& comparison = *report.comparison;
    const std::string tables =
        comparison.rows > 0 ? absl::StrCat(", with those of ", comparison.rows, " rows of tables") : "";
    if (comparison.different == 0) {
      *environment.out << "All " << comparison.elements << " weights are the run's, bit by bit" << tables << ".\n";
    } else {
      *environment.out << comparison.different << " of " << comparison.elements << " weights" << tables
                       << (tables.empty() ? "" : ",") << " DIFFER from the run's: " << comparison.first_difference
                       << ".\n";
    }
  } else if (options.overrides.empty() && !options.until_step.has_value()) {
    *environment.out << "The run has no checkpoint final to compare with.\n";
  }
  *environment.out << "Weights: rubato export " << options.output << " --output=FILE" << std::endl;
}

int Replay(ReplayCommandOptions options, const Environment& environment) {
  ReplayOptions& replay = options.replay;
  while (replay.run_directory.size() > 1 && replay.run_directory.back() == '/') replay.run_directory.pop_back();
  if (replay.output.empty()) replay.output = absl::StrCat(replay.run_directory, "-replay");
  if (absl::Status status = PrepareRunDirectory(replay.output, options.overwrite); !status.ok()) {
    return ReportError(environment, "replay", Annotate(status, "--output"));
  }
  replay.clock = environment.clock;
  replay.factory = {.cuda = CreateCudaBackend, .count_gpus = CountCudaDevices};
  const bool terminal = isatty(STDERR_FILENO) != 0;
  absl::Time told = environment.clock->Now();
  replay.progress = [&environment, &told, terminal](int64_t done, int64_t all) {
    const absl::Time now = environment.clock->Now();
    if (!terminal && now - told < kTellEvery) return;
    told = now;
    *environment.err << (terminal ? "\r" : "") << done << " of " << all << " updates"
                     << (done == all || !terminal ? "\n" : "") << std::flush;
  };
  const absl::StatusOr<ReplayReport> report = ReplayRun(replay);
  if (!report.ok()) return ReportError(environment, "replay", report.status());
  Print(*report, replay, environment);
  const bool differs = report->comparison.has_value() && report->comparison->different > 0;
  return differs ? kExitFailed : kExitOk;
}

}  // namespace

void AddReplayCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "replay", "Train a run that wrote update logs again, in its order: with the same config it gives the same bits");
  auto options = std::make_shared<ReplayCommandOptions>();
  ReplayOptions& replay = options->replay;
  command->add_option("RUN", replay.run_directory, "The run's directory")->required()->check(CLI::ExistingDirectory);
  command->add_option("--output", replay.output, "A directory for the weights. Default: RUN-replay");
  command->add_flag("--overwrite", options->overwrite, "Delete what an earlier replay or run left there");
  command->add_option("--servers", replay.servers, "How many servers the weights are divided over")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--until-step", replay.until_step,
                   "As far as the first N updates of each chunk: with SYNC, the job's first N steps")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--set", replay.overrides,
                   "What to compute otherwise in the same order, path=value: optimizer, compression, "
                   "training.clip_norm, consistency.compensation")
      ->expected(1)
      ->take_all();
  command->callback([options, environment, exit_code] { *exit_code = Replay(*options, *environment); });
}

}  // namespace rubato
