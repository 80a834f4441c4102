#include <memory>

#include "cli/command/client_job.h"
#include "cli/command/commands.h"
#include "cli/command/job_run.h"
#include "cli/command/mode_choice.h"
#include "cli/command/resumable_run.h"
#include "cli/launch/worker_command.h"
#include "common/status.h"

namespace rubato {
namespace {

struct RunCommandOptions {
  ClientJobOptions job;
  LaunchOptions launch;
  bool restart_failed = false;
};

absl::Status Run(const RunCommandOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<StopSignals> signals, StopSignals::Create());
  LocalTaskHost::Clients clients = {.show_output = true};
  RUBATO_ASSIGN_OR_RETURN(clients.command, MakeWorkerCommand(environment.rest, "COMMAND", environment.program));
  RUBATO_ASSIGN_OR_RETURN(PreparedRun run, PrepareClientRun(options.job, NameOfCommand(environment.rest),
                                                            options.launch, clients, environment));
  if (run.resume) RUBATO_RETURN_IF_ERROR(CheckResumable(run.config.run_directory(), environment.clock->Now()));
  run.restart_failed = options.restart_failed;
  ShareCores(run.config.cluster().workers(), &*run.clients->command);
  *environment.out << "[job] " << run.config.name() << ": workers " << run.config.cluster().workers() << ", servers "
                   << run.config.cluster().servers() << ", mode " << ModeOfConfig(run.config).Name()
                   << ", run directory " << run.config.run_directory() << std::endl;
  return ReportRun(run, RunJob(run, "[job] ", signals.get(), environment), environment);
}

}  // namespace

void AddRunCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("run", "Run a program as the workers of a job on this machine");
  command->footer(
      "rubato run -n WORKERS [OPTIONS] -- COMMAND [ARGUMENTS] starts COMMAND once for each worker, with\n"
      "RUBATO_COORDINATOR, RUBATO_RANK, RUBATO_SIZE, RUBATO_LOCAL_RANK, RUBATO_LOCAL_SIZE, RUBATO_LIBRARY and\n"
      "RUBATO_SIDECAR in its environment: rubato run -n 4 -- python train.py");
  auto options = std::make_shared<RunCommandOptions>();
  AddClientJobOptions(command, &options->job);
  AddLaunchOptions(command, &options->launch);
  AddWorkerOptions(command, &options->launch);
  command->add_flag(
      "--restart-failed", options->restart_failed,
      "Start a worker again that ends with an error, as one that is killed is; otherwise it ends the job");
  command->callback([options, environment, exit_code] {
    const absl::Status status = Run(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "run", status);
  });
}

}  // namespace rubato
