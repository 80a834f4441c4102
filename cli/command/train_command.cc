#include <memory>

#include "cli/command/commands.h"
#include "cli/command/job_run.h"
#include "cli/command/resumable_run.h"
#include "common/status.h"

namespace rubato {
namespace {

absl::Status Train(const RunOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<StopSignals> signals, StopSignals::Create());
  RUBATO_ASSIGN_OR_RETURN(PreparedRun run, PrepareRun(options, environment));
  if (run.resume) {
    RUBATO_RETURN_IF_ERROR(CheckResumable(run.config.run_directory(), environment.clock->Now()));
    RUBATO_RETURN_IF_ERROR(CheckSameJob(run.config));
  }
  return ReportRun(run, RunJob(run, "", signals.get(), environment), environment);
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
