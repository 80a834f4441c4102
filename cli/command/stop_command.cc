#include <memory>

#include "cli/command/commands.h"
#include "cli/command/run_directory.h"
#include "cli/launch/coordinator_client.h"
#include "common/status.h"

namespace rubato {
namespace {

struct StopOptions {
  std::string address;
  std::string reason = "stopped by the operator";
};

absl::Status Stop(const StopOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(std::string address, CoordinatorAddress(options.address));
  RUBATO_RETURN_IF_ERROR(CoordinatorClient(address).StopJob(options.reason, absl::Seconds(10)));
  *environment.out << "The job at " << address << " stops.\n";
  return absl::OkStatus();
}

}  // namespace

void AddStopCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("stop", "Stop a running job");
  auto options = std::make_shared<StopOptions>();
  command->add_option("ADDRESS", options->address, "The coordinator's host:port, or the run's directory")->required();
  command->add_option("--reason", options->reason, "What the tasks' logs will say");
  command->callback([options, environment, exit_code] {
    absl::Status status = Stop(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "stop", status);
  });
}

}  // namespace rubato
