#include <memory>

#include "cli/checkpoint/run_checkpoints.h"
#include "cli/command/commands.h"

namespace rubato {
namespace {

struct CheckpointOptions {
  std::string run_directory;
  std::string name;
};

}  // namespace

void AddCheckpointCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("checkpoint", "Show what a run's checkpoints hold, and check them");
  auto options = std::make_shared<CheckpointOptions>();
  command->add_option("RUN", options->run_directory, "The run's directory")->required();
  command->add_option("--name", options->name, "Only this checkpoint: \"final\", \"stopped\", \"step150\", \"step0\"");
  command->callback([options, environment, exit_code] {
    const absl::Status status =
        DescribeCheckpoints(options->run_directory, options->name, environment->clock->Now(), environment->out);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "checkpoint", status);
  });
}

}  // namespace rubato
