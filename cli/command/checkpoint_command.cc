#include <memory>

#include "cli/checkpoint/run_checkpoints.h"
#include "cli/command/commands.h"
#include "cli/command/job_control.h"
#include "cli/command/named_job.h"
#include "cli/launch/coordinator_client.h"
#include "common/status.h"

namespace rubato {
namespace {

struct CheckpointOptions {
  // With `now` the coordinator's address will do.
  JobChoice job;
  std::string name;
  bool now = false;
  CheckpointNowOptions writing;
};

absl::Status WriteNow(const CheckpointOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const NamedJob job, FindRunningJob(options.job, environment.clock->Now()));
  CoordinatorClient coordinator(job.address, job.security);
  return ExplainSilence(job, WriteCheckpointNow(&coordinator, options.writing, environment));
}

}  // namespace

void AddCheckpointCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "checkpoint", "Show what a run's checkpoints hold, and check them; or have a running job write one");
  auto options = std::make_shared<CheckpointOptions>();
  AddJobChoice(command, "RUN", &options->job);
  command->add_option("--name", options->name, "Only this checkpoint: \"final\", \"stopped\", \"step150\", \"step0\"");
  command->add_flag("--now", options->now, "Have the job, which trains, write a checkpoint, and wait for it")
      ->excludes("--name");
  AddCheckpointNowOptions(command, &options->writing);
  command->callback([options, environment, exit_code] {
    absl::Status status = options->now ? WriteNow(*options, *environment)
                                       : DescribeCheckpoints(options->job.place, options->name,
                                                             environment->clock->Now(), environment->out);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "checkpoint", status);
  });
}

}  // namespace rubato
