#include "cli/command/job_control.h"

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "cli/command/mode_choice.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato {

void AddSwitchOptions(CLI::App* command, SwitchOptions* options) {
  command->add_option("--to", options->mode, "sync, async or ssp:N")->required();
  command->add_option("--quorum", options->quorum, "sync: contributions that complete a step; 0: all");
  command
      ->add_option("--learning_rate_scale", options->learning_rate_scale,
                   "Factor on the learning rate; otherwise in proportion to the contributions in one update")
      ->check(CLI::PositiveNumber);
  command->add_option("--sync_every", options->sync_every, "Local SGD: batches between two exchanges; 0: as it is");
  command->add_option("--momentum", options->momentum, "The optimizer's momentum from then on; otherwise as it is");
  command
      ->add_option("--compression", options->compression,
                   "on: gradients are encoded as compression.push says; off: pushed as they are; otherwise as it is")
      ->check(CLI::IsMember({"on", "off"}));
  command->add_option("--timeout", options->timeout_seconds, "Seconds to wait for the change")
      ->check(CLI::PositiveNumber);
}

absl::Status SwitchJob(CoordinatorClient* coordinator, const SwitchOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const ModeChoice mode, ParseMode(options.mode, "--to"));
  v1::SwitchModeRequest request;
  request.set_mode(mode.mode);
  request.set_staleness_bound(mode.staleness_bound);
  request.set_quorum(options.quorum);
  request.set_learning_rate_scale(options.learning_rate_scale);
  request.set_sync_every(options.sync_every);
  if (options.momentum) request.set_momentum(*options.momentum);
  if (!options.compression.empty()) request.set_compress(options.compression == "on");
  RUBATO_ASSIGN_OR_RETURN(const v1::SwitchModeReply reply,
                          coordinator->SwitchMode(request, absl::Seconds(options.timeout_seconds)));
  const v1::Plan& plan = reply.plan();
  *environment.out << absl::StrFormat("%s from step %d on: plan %d, committed in %.1f ms\n",
                                      ModeName(plan.mode(), plan.staleness_bound()), plan.first_step(),
                                      plan.generation(), reply.seconds() * 1000);
  return absl::OkStatus();
}

void AddStopOptions(CLI::App* command, StopOptions* options) {
  command->add_option("--reason", options->reason, "What the tasks' logs will say");
}

absl::Status StopJob(CoordinatorClient* coordinator, const StopOptions& options, const std::string& place,
                     const Environment& environment) {
  RUBATO_RETURN_IF_ERROR(coordinator->StopJob(options.reason, absl::Seconds(10)));
  *environment.out << "The job at " << place
                   << " stops. What it has trained is kept: rubato train CONFIG --resume (or rubato run --resume) goes "
                      "on with it.\n";
  return absl::OkStatus();
}

void AddCheckpointNowOptions(CLI::App* command, CheckpointNowOptions* options) {
  command->add_option("--timeout", options->timeout_seconds, "Seconds to wait until the checkpoint is complete")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
}

absl::Status WriteCheckpointNow(CoordinatorClient* coordinator, const CheckpointNowOptions& options,
                                const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const v1::WriteCheckpointNowReply reply,
                          coordinator->WriteCheckpointNow(absl::Seconds(options.timeout_seconds)));
  *environment.out << absl::StrFormat("checkpoint %s is complete: all steps before %d, written in %.1f s\n",
                                      reply.cut().name(), reply.step(), reply.seconds());
  return absl::OkStatus();
}

}  // namespace rubato
