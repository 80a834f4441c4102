#include <memory>
#include <utility>

#include "cli/command/commands.h"
#include "cli/command/job_run.h"
#include "cli/command/mode_choice.h"
#include "common/status.h"

namespace rubato {
namespace {

absl::Status Train(const RunOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<StopSignals> signals, StopSignals::Create());
  RUBATO_ASSIGN_OR_RETURN(PreparedRun run, PrepareRun(options, environment));
  const std::string& directory = run.config.run_directory();
  absl::Status outcome = RunJob(run, "", signals.get(), environment);
  ComparedRun result = LoadRun(run.config, directory, ".", outcome);
  bool broken = result.audit == AuditResult::kBroken;
  if (outcome.ok() && !result.summary.ok) outcome = absl::AbortedError(result.summary.error);
  if (!result.record.progress.empty() || !result.record.evaluations.empty()) {
    Comparison comparison = NewComparison(run);
    comparison.modes = {{ModeOfConfig(run.config).Name(), {std::move(result)}}};
    outcome.Update(WriteReports(comparison, directory, environment));
  }
  if (broken) outcome.Update(absl::DataLossError("the audit found a broken invariant: see rubato audit " + directory));
  return outcome;
}

}  // namespace

void AddTrainCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("train", "Run a job on this machine");
  auto options = std::make_shared<RunOptions>();
  AddRunOptions(command, options.get());
  command->callback([options, environment, exit_code] {
    absl::Status status = Train(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "train", status);
  });
}

}  // namespace rubato
