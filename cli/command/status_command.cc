#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/command/commands.h"
#include "cli/command/named_job.h"
#include "cli/command/run_ending.h"
#include "cli/command/status_text.h"
#include "cli/command/watch_outcome.h"
#include "cli/command/watch_text.h"
#include "cli/launch/coordinator_client.h"
#include "cli/launch/progress_display.h"
#include "common/status.h"

namespace rubato {
namespace {

struct StatusOptions {
  JobChoice job;
  bool watch = false;
  double interval_seconds = 1;
};

bool Ended(const v1::JobStatus& status) {
  return status.phase() == v1::JobStatus::DONE || status.phase() == v1::JobStatus::FAILED;
}

// A coordinator that is silent for longer will not come back.
constexpr absl::Duration kSilence = absl::Seconds(15);

// The run of the job that was watched has ended.
absl::Status ReportEnding(const RunEnding& ending, const std::string& run_directory, const Environment& environment) {
  *environment.out << DescribeEnding(ending, run_directory) << std::endl;
  return WatchOutcome(ending);
}

absl::Status Watch(const NamedJob& job, absl::Duration interval, const Environment& environment) {
  CoordinatorClient coordinator(job.address, job.security);
  const bool terminal = TerminalColumns() > 0;
  std::optional<StatusReading> before;
  for (;;) {
    absl::StatusOr<v1::JobStatus> status = coordinator.GetStatus(absl::Seconds(10));
    if (!status.ok()) {
      if (!before.has_value()) return ExplainSilence(job, status.status());
      // It ends with its job.
      const std::string& run_directory = before->status.run_directory();
      if (const std::optional<RunEnding> ending = ReadRunEnding(run_directory)) {
        return ReportEnding(*ending, run_directory, environment);
      }
      if (environment.clock->Now() - before->at > kSilence) return ExplainSilence(job, status.status());
      environment.clock->Sleep(interval);
      continue;
    }
    StatusReading now = {*std::move(status), environment.clock->Now()};
    // From the upper left corner, and what is left of the last text is deleted.
    *environment.out << (terminal ? absl::StrCat("\x1b[H\x1b[2J", WatchText(before, now)) : WatchLines(now))
                     << std::flush;
    if (Ended(now.status)) return WatchOutcome(now.status);
    before = std::move(now);
    environment.clock->Sleep(interval);
  }
}

absl::Status Status(const StatusOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const NamedJob job, FindJob(options.job, environment.clock->Now()));
  if (job.ending.has_value()) {
    const absl::Status outcome = ReportEnding(*job.ending, job.run_directory, environment);
    // Who only asks has been answered.
    return options.watch ? outcome : absl::OkStatus();
  }
  if (options.watch) return Watch(job, absl::Seconds(options.interval_seconds), environment);
  const absl::StatusOr<v1::JobStatus> status =
      CoordinatorClient(job.address, job.security).GetStatus(absl::Seconds(10));
  if (!status.ok()) return ExplainSilence(job, status.status());
  *environment.out << StatusText(*status) << std::flush;
  return absl::OkStatus();
}

}  // namespace

void AddStatusCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("status", "Show a running job: tasks, clocks, who waits for whom");
  auto options = std::make_shared<StatusOptions>();
  AddJobChoice(command, "ADDRESS", &options->job);
  command->add_flag("--watch", options->watch, "Show it again and again, with rates, until the job ends");
  command->add_option("--interval", options->interval_seconds, "Seconds between two readings of --watch, 0.1 to 3600")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  command->callback([options, environment, exit_code] {
    absl::Status status = Status(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "status", status);
  });
}

}  // namespace rubato
