#include <memory>
#include <string>

#include "cli/command/commands.h"
#include "cli/command/job_control.h"
#include "cli/command/named_job.h"
#include "cli/launch/coordinator_client.h"
#include "common/status.h"

namespace rubato {
namespace {

struct Options {
  JobChoice job;
  StopOptions stop;
};

absl::Status Stop(const Options& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const NamedJob job, FindRunningJob(options.job, environment.clock->Now()));
  CoordinatorClient coordinator(job.address, job.security);
  return ExplainSilence(job, StopJob(&coordinator, options.stop, job.address, environment));
}

}  // namespace

void AddStopCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("stop", "Stop a running job");
  auto options = std::make_shared<Options>();
  AddJobChoice(command, "ADDRESS", &options->job);
  AddStopOptions(command, &options->stop);
  command->callback([options, environment, exit_code] {
    absl::Status status = Stop(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "stop", status);
  });
}

}  // namespace rubato
