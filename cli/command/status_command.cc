#include <memory>

#include "cli/command/commands.h"
#include "cli/command/run_directory.h"
#include "cli/command/status_text.h"
#include "cli/launch/coordinator_client.h"
#include "common/status.h"

namespace rubato {
namespace {

absl::Status Status(const std::string& text, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(std::string address, CoordinatorAddress(text));
  RUBATO_ASSIGN_OR_RETURN(v1::JobStatus status, CoordinatorClient(address).GetStatus(absl::Seconds(10)));
  *environment.out << StatusText(status) << std::flush;
  return absl::OkStatus();
}

}  // namespace

void AddStatusCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("status", "Show a running job: tasks, clocks, who waits for whom");
  auto address = std::make_shared<std::string>();
  command->add_option("ADDRESS", *address, "The coordinator's host:port, or the run's directory")->required();
  command->callback([address, environment, exit_code] {
    absl::Status status = Status(*address, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "status", status);
  });
}

}  // namespace rubato
