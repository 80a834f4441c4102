#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/checkpoint/checkpoint_summary.h"
#include "cli/command/commands.h"
#include "cli/command/job_control.h"
#include "cli/command/named_job.h"
#include "cli/launch/coordinator_client.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

struct CheckpointOptions {
  // With `now` the coordinator's address will do.
  std::string run_directory;
  std::string name;
  bool now = false;
  CheckpointNowOptions writing;
};

absl::Status WriteNow(const CheckpointOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const NamedJob job, FindRunningJob(options.run_directory));
  CoordinatorClient coordinator(job.address);
  return ExplainSilence(job, WriteCheckpointNow(&coordinator, options.writing, environment));
}

absl::Status Describe(const CheckpointOptions& options, const Environment& environment) {
  const std::string checkpoints = JoinPath(options.run_directory, "checkpoints");
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(checkpoints);
  if (!names.ok()) return Annotate(names.status(), absl::StrCat("RUN ", options.run_directory));
  if (!options.name.empty()) {
    if (std::find(names->begin(), names->end(), options.name) == names->end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--name: value \"", options.name, "\"; allowed: ", absl::StrJoin(*names, ", ")));
    }
    names = std::vector<std::string>{options.name};
  }
  if (names->empty()) return absl::NotFoundError(absl::StrCat(checkpoints, ": holds no checkpoint"));
  absl::Status bad;
  for (const std::string& name : *names) {
    absl::StatusOr<CheckpointSummary> summary = SummarizeCheckpoint(JoinPath(checkpoints, name));
    if (summary.ok()) {
      *environment.out << FormatCheckpoint(name, *summary) << std::endl;
    } else {
      // The others may be good.
      *environment.out << "Checkpoint " << name << " cannot be used: " << summary.status().message() << "\n"
                       << std::endl;
      bad.Update(Annotate(summary.status(), name));
    }
  }
  // Whatever the reason, it is the checkpoint's and not the command line's.
  return bad.ok() ? bad : absl::DataLossError(bad.message());
}

}  // namespace

void AddCheckpointCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "checkpoint", "Show what a run's checkpoints hold, and check them; or have a running job write one");
  auto options = std::make_shared<CheckpointOptions>();
  command->add_option("RUN", options->run_directory, "The run's directory; with --now also the coordinator's host:port")
      ->required();
  command->add_option("--name", options->name, "Only this checkpoint: \"final\", \"stopped\", \"step0\"");
  command->add_flag("--now", options->now, "Have the job, which trains, write a checkpoint, and wait for it")
      ->excludes("--name");
  AddCheckpointNowOptions(command, &options->writing);
  command->callback([options, environment, exit_code] {
    absl::Status status = options->now ? WriteNow(*options, *environment) : Describe(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "checkpoint", status);
  });
}

}  // namespace rubato
