#ifndef RUBATO_CLI_COMMAND_JOB_RUN_H_
#define RUBATO_CLI_COMMAND_JOB_RUN_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/command/client_job.h"
#include "cli/command/environment.h"
#include "cli/launch/job_supervisor.h"
#include "cli/launch/local_task_host.h"
#include "cli/launch/slow_workers.h"
#include "cli/launch/stop_signals.h"
#include "cli/launch/task_commands.h"
#include "cli/launch/task_host.h"
#include "cli/report/comparison.h"
#include "proto/job_config.pb.h"

namespace rubato {

// The options of everything that runs jobs on this machine.
struct LaunchOptions {
  std::string run_directory;
  std::string binaries;
  std::string metrics_listen;
  double time_limit_seconds = 0;
  bool overwrite = false;
  bool resume = false;
  // Of workers, as ParseSlowWorkers reads them.
  std::vector<std::string> slow;
  std::vector<std::string> network;
  // Workers run on any CPU, also where they fill the machine.
  bool unbound = false;
};
// All but those of workers, which somebody else may start.
void AddLaunchOptions(CLI::App* command, LaunchOptions* options);
void AddWorkerOptions(CLI::App* command, LaunchOptions* options);

// Those of `train` and `compare`, whose jobs a config describes.
struct RunOptions {
  std::string config_path;
  std::vector<std::string> overrides;
  LaunchOptions launch;
};
void AddRunOptions(CLI::App* command, RunOptions* options);

// What the options mean.
struct PreparedRun {
  v1::JobConfig config;
  Binaries binaries;
  SlowWorkers slowed;
  std::string metrics_listen;
  absl::Duration time_limit;
  // The job goes on with what its run directory holds.
  bool resume = false;
  // As LocalTaskHost::Options.bind_workers.
  bool bind_workers = true;
  // Of a client's job.
  std::optional<LocalTaskHost::Clients> clients;
  // As JobSupervisor::Options.restart_failed.
  bool restart_failed = false;
  // Whether it is shown how far the job is.
  bool show_progress = true;
  // Called when all tasks that the host starts have been started. An error ends the job. May be null.
  std::function<absl::Status(const LocalTaskHost&)> on_started;
};
// Of the options alone: neither config nor programs. InvalidArgument: both `overwrite` and `resume`.
absl::StatusOr<PreparedRun> LaunchedRun(const LaunchOptions& options);

// Loads the config, finds the programs and makes the run directory, which is then empty; with `resume` it is left as it
// is. Errors are those of LaunchedRun, LoadJobConfig, FindBinaries, ParseSlowWorkers and PrepareRunDirectory.
absl::StatusOr<PreparedRun> PrepareRun(const RunOptions& options, const Environment& environment);

// The same for a client's job, called `name` unless its config says otherwise; errors also as of MakeClientJob. If
// nobody has said where its run directory is, it is the first free one of runs/<name>, runs/<name>-2, .... With
// `resume` the config is that of the run directory.
absl::StatusOr<PreparedRun> PrepareClientRun(const ClientJobOptions& job, const std::string& name,
                                             const LaunchOptions& options, const LocalTaskHost::Clients& clients,
                                             const Environment& environment);

// What became of a job.
struct JobOutcome {
  // As of JobSupervisor::Result; if the job was stopped, with how to go on.
  absl::Status job;
  // Of TaskHost::Finish.
  absl::Status finished;
};

// Sees a job through to its end on any deploy target, and shows its progress, each line with `label` before it, and
// what its workers write. `started` is what the host's Start returned; the run directory is on this machine when the
// host has finished. The callbacks of `options` are set here, but for an on_status that is set already.
JobOutcome RunOnHost(TaskHost* host, const absl::Status& started, const std::string& run_directory,
                     JobSupervisor::Options options, const std::string& label, StopSignals* signals,
                     const Environment& environment);

// The same on this machine, where nothing can be left to finish.
absl::Status RunJob(const PreparedRun& run, const std::string& label, StopSignals* signals,
                    const Environment& environment);

// The finished (or failed) run of <parent>/<directory> for the reports. `outcome` is what RunJob returned. The update
// log is replayed if the config asked for one.
ComparedRun LoadRun(const v1::JobConfig& config, const std::string& parent, const std::string& directory,
                    const absl::Status& outcome);

// A comparison of that config's job, without modes.
Comparison NewComparison(const PreparedRun& run);

// Prints the table and the curves, and writes summary.json and report.html into `directory`.
absl::Status WriteReports(const Comparison& comparison, const std::string& directory, const Environment& environment);

// What is shown and written of a run whose record is in its run directory: WriteReports, and the audit if the config
// asked for a log. `outcome` is how the job ended, and is returned unless what it left behind is worse.
absl::Status ReportRun(const PreparedRun& run, absl::Status outcome, const Environment& environment);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_JOB_RUN_H_
