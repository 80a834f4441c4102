#include <memory>

#include "absl/strings/str_format.h"
#include "cli/command/commands.h"
#include "cli/command/mode_choice.h"
#include "cli/command/run_directory.h"
#include "cli/launch/coordinator_client.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato {
namespace {

struct SwitchOptions {
  std::string address;
  std::string mode;
  uint32_t quorum = 0;
  double learning_rate_scale = 1;
  double timeout_seconds = 60;
};

absl::Status Switch(const SwitchOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(ModeChoice mode, ParseMode(options.mode, "--to"));
  RUBATO_ASSIGN_OR_RETURN(std::string address, CoordinatorAddress(options.address));
  v1::SwitchModeRequest request;
  request.set_mode(mode.mode);
  request.set_staleness_bound(mode.staleness_bound);
  request.set_quorum(options.quorum);
  request.set_learning_rate_scale(options.learning_rate_scale);
  CoordinatorClient coordinator(address);
  RUBATO_ASSIGN_OR_RETURN(v1::SwitchModeReply reply,
                          coordinator.SwitchMode(request, absl::Seconds(options.timeout_seconds)));
  const v1::Plan& plan = reply.plan();
  *environment.out << absl::StrFormat("%s from step %d on: plan %d, committed in %.1f ms\n",
                                      ModeName(plan.mode(), plan.staleness_bound()), plan.first_step(),
                                      plan.generation(), reply.seconds() * 1000);
  return absl::OkStatus();
}

}  // namespace

void AddSwitchCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("switch", "Change the mode of a running job");
  auto options = std::make_shared<SwitchOptions>();
  command->add_option("ADDRESS", options->address, "The coordinator's host:port, or the run's directory")->required();
  command->add_option("--to", options->mode, "sync, async or ssp:N")->required();
  command->add_option("--quorum", options->quorum, "sync: contributions that complete a step; 0: all");
  command->add_option("--learning_rate_scale", options->learning_rate_scale, "Factor on the learning rate")
      ->check(CLI::PositiveNumber);
  command->add_option("--timeout", options->timeout_seconds, "Seconds to wait for the change")
      ->check(CLI::PositiveNumber);
  command->callback([options, environment, exit_code] {
    absl::Status status = Switch(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "switch", status);
  });
}

}  // namespace rubato
