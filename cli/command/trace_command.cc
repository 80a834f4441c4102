#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cli/command/commands.h"
#include "cli/command/job_trace.h"
#include "cli/command/run_directory.h"
#include "cli/launch/coordinator_client.h"
#include "cli/launch/run_security.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

struct TraceOptions {
  std::string run_directory;
  double seconds = 5;
  std::string output;
};

// Has a running job recorded. False: there is none that trains.
absl::StatusOr<bool> RecordRunning(const TraceOptions& options, const Environment& environment, uint64_t* id) {
  absl::StatusOr<std::string> address = CoordinatorAddress(options.run_directory);
  if (!address.ok()) return false;
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const TaskSecurity> security,
                          SecurityOfRun(options.run_directory, environment.clock->Now()));
  CoordinatorClient coordinator(*address, std::move(security));
  absl::StatusOr<v1::JobStatus> status = coordinator.GetStatus(absl::Seconds(2));
  if (!status.ok() || status->phase() != v1::JobStatus::TRAINING) return false;
  RUBATO_ASSIGN_OR_RETURN(*id, RecordTrace(&coordinator, options.seconds, environment));
  return true;
}

absl::Status Trace(const TraceOptions& options, const Environment& environment) {
  std::error_code error;
  if (!std::filesystem::is_directory(options.run_directory, error)) {
    return absl::NotFoundError(
        absl::StrCat("RUN: value \"", options.run_directory, "\"; allowed: the directory of a run"));
  }
  uint64_t id = 0;
  RUBATO_ASSIGN_OR_RETURN(const bool running, RecordRunning(options, environment, &id));
  std::string directory = TraceDirectoryOf(options.run_directory, id);
  if (!running) {
    RUBATO_ASSIGN_OR_RETURN(directory, LatestTraces(options.run_directory));
  }
  if (!FileExists(directory)) {
    return absl::UnavailableError(absl::StrCat(directory,
                                               ": no task has written there; do they run on other machines, "
                                               "with a run directory of their own? Then see rubato deploy ssh trace"));
  }
  return MergeTraces(directory, options.output, environment);
}

}  // namespace

void AddTraceCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "trace", "One timeline of all tasks: of a running job, or of what a finished one has recorded");
  auto options = std::make_shared<TraceOptions>();
  command->add_option("RUN", options->run_directory, "The run's directory")->required();
  command->add_option("--seconds", options->seconds, "How long a running job is recorded, up to 600")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 600.0));
  command->add_option("--output", options->output, "The file to write; otherwise merged.json beside the traces");
  command->callback([options, environment, exit_code] {
    absl::Status status = Trace(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "trace", status);
  });
}

}  // namespace rubato
