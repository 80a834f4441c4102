#include <memory>
#include <string>

#include "cli/command/commands.h"
#include "cli/command/job_control.h"
#include "cli/command/mode_choice.h"
#include "cli/command/named_job.h"
#include "cli/launch/coordinator_client.h"
#include "common/status.h"

namespace rubato {
namespace {

struct Options {
  JobChoice job;
  SwitchOptions change;
};

absl::Status Switch(const Options& options, const Environment& environment) {
  // What cannot be is said before what is not there.
  RUBATO_RETURN_IF_ERROR(ParseMode(options.change.mode, "--to").status());
  RUBATO_ASSIGN_OR_RETURN(const NamedJob job, FindRunningJob(options.job, environment.clock->Now()));
  CoordinatorClient coordinator(job.address, job.security);
  return ExplainSilence(job, SwitchJob(&coordinator, options.change, environment));
}

}  // namespace

void AddSwitchCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("switch", "Change the mode of a running job");
  auto options = std::make_shared<Options>();
  AddJobChoice(command, "ADDRESS", &options->job);
  AddSwitchOptions(command, &options->change);
  command->callback([options, environment, exit_code] {
    absl::Status status = Switch(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "switch", status);
  });
}

}  // namespace rubato
