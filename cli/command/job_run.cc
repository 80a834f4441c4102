#include "cli/command/job_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/audit/audit.h"
#include "cli/command/mode_choice.h"
#include "cli/command/run_directory.h"
#include "cli/command/run_ending.h"
#include "cli/launch/progress_display.h"
#include "cli/report/baseline_table.h"
#include "cli/report/html_report.h"
#include "cli/report/summary_json.h"
#include "cli/report/target.h"
#include "cli/report/terminal_report.h"
#include "common/config/awaited_model.h"
#include "common/config/client_job.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/transport/process_tuning.h"

namespace rubato {

void AddLaunchOptions(CLI::App* command, LaunchOptions* options) {
  command->add_option("--run_directory", options->run_directory,
                      "Where everything is written; otherwise the config says so");
  command->add_option("--binaries", options->binaries, "Folder of the coordinator, server and worker programs");
  command->add_option(
      "--metrics_listen", options->metrics_listen,
      "host:port on which the coordinator shows metrics, and where to find those of the other tasks, which "
      "then show them on free local ports");
  command->add_option("--time_limit", options->time_limit_seconds, "Seconds after which a job is stopped; 0: never")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--overwrite", options->overwrite, "Delete what an earlier run left in the run directory");
  command->add_flag("--resume", options->resume,
                    "Go on with the run that the run directory holds; servers and workers may be others than before");
}

void AddWorkerOptions(CLI::App* command, LaunchOptions* options) {
  command
      ->add_option("--slow", options->slow,
                   "worker:INDEX:MODEL, or worker:* for all others: slows a worker down, as in x3 or "
                   "sleep=30ms+bimodal=x6,0.125 (docs/operating.md); may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--network", options->network,
                   "worker:INDEX:LINK, or worker:* for all others: puts a worker behind a slow network link, as in "
                   "latency=10ms,rate=100mbit; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--unbound", options->unbound,
                    "Workers run on any CPU; otherwise each stays on one if they are as many as this machine has, and "
                    "compute with one thread");
}

void AddRunOptions(CLI::App* command, RunOptions* options) {
  command->add_option("CONFIG", options->config_path, "The job's config, a textproto");
  command->add_option("--set", options->overrides, "path=value: overrides a field of the config; may be repeated")
      ->allow_extra_args(false);
  AddWorkerOptions(command, &options->launch);
  AddLaunchOptions(command, &options->launch);
}

namespace {

// With --resume: the config that the run directory holds, which has the model since a client has said what it is.
absl::StatusOr<ClientJobOptions> ResumedJob(ClientJobOptions job, const LaunchOptions& options) {
  if (!options.resume) return job;
  if (options.run_directory.empty()) {
    return absl::InvalidArgumentError("--resume: which run is not said; allowed: with --run_directory");
  }
  if (job.config_path.empty()) job.config_path = JoinPath(options.run_directory, "job.textproto");
  return job;
}

}  // namespace

absl::StatusOr<PreparedRun> LaunchedRun(const LaunchOptions& options) {
  if (options.overwrite && options.resume) {
    return absl::InvalidArgumentError("--overwrite deletes what --resume goes on with; allowed: one of them");
  }
  PreparedRun run;
  run.resume = options.resume;
  run.bind_workers = !options.unbound;
  run.metrics_listen = options.metrics_listen;
  run.time_limit =
      options.time_limit_seconds > 0 ? absl::Seconds(options.time_limit_seconds) : absl::InfiniteDuration();
  return run;
}

absl::StatusOr<PreparedRun> PrepareRun(const RunOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(PreparedRun run, LaunchedRun(options.launch));
  if (options.config_path.empty()) {
    return absl::InvalidArgumentError("CONFIG is required: the job's config, a textproto");
  }
  RUBATO_ASSIGN_OR_RETURN(run.config, LoadJobConfig(options.config_path, options.overrides));
  if (!options.launch.run_directory.empty()) run.config.set_run_directory(options.launch.run_directory);
  RUBATO_ASSIGN_OR_RETURN(
      run.slowed, ParseSlowWorkers(options.launch.slow, options.launch.network, run.config.cluster().workers()));
  RUBATO_ASSIGN_OR_RETURN(run.binaries, FindBinaries(options.launch.binaries, environment.program));
  if (!run.resume) {
    RUBATO_RETURN_IF_ERROR(PrepareRunDirectory(run.config.run_directory(), options.launch.overwrite));
  }
  return run;
}

absl::StatusOr<PreparedRun> PrepareClientRun(const ClientJobOptions& job, const std::string& name,
                                             const LaunchOptions& options, const LocalTaskHost::Clients& clients,
                                             const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(PreparedRun run, LaunchedRun(options));
  run.clients = clients;
  RUBATO_ASSIGN_OR_RETURN(const ClientJobOptions resumed, ResumedJob(job, options));
  RUBATO_ASSIGN_OR_RETURN(run.config, MakeClientJob(resumed, name));
  RUBATO_ASSIGN_OR_RETURN(run.slowed, ParseSlowWorkers(options.slow, options.network, run.config.cluster().workers()));
  RUBATO_ASSIGN_OR_RETURN(run.binaries, FindBinariesForClients(options.binaries, environment.program));
  const bool is_default = run.config.run_directory() == absl::StrCat("runs/", run.config.name());
  if (!options.run_directory.empty()) {
    run.config.set_run_directory(options.run_directory);
  } else if (is_default && !options.overwrite) {
    run.config.set_run_directory(FreeDirectory(run.config.run_directory()));
  }
  if (!run.resume) RUBATO_RETURN_IF_ERROR(PrepareRunDirectory(run.config.run_directory(), options.overwrite));
  return run;
}

JobOutcome RunOnHost(TaskHost* host, const absl::Status& started, const std::string& run_directory,
                     JobSupervisor::Options options, const std::string& label, StopSignals* signals,
                     const Environment& environment) {
  ProgressDisplay display(environment.out, TerminalColumns(), label);
  if (options.on_status == nullptr) {
    options.on_status = [&](const v1::JobStatus& status) { display.Show(status, environment.clock->Now()); };
  }
  options.on_event = [&](absl::string_view text) { display.Print(absl::StrCat(label, text)); };
  options.on_output = [&](absl::string_view line) { display.Print(line); };
  JobSupervisor supervisor(std::move(options), host, environment.clock, signals);
  supervisor.Run(started);
  JobOutcome outcome;
  outcome.finished = host->Finish();
  const std::optional<RunEnding> ending = ReadRunEnding(run_directory);
  std::optional<std::string> recorded;
  if (ending.has_value()) recorded = ending->ok || !ending->error.empty() ? ending->error : "the job failed";
  outcome.job = WithWayOn(supervisor.Result(recorded), run_directory);
  return outcome;
}

namespace {

// The run's config with the model that a client has offered, as its coordinator has written it into the run directory;
// without it if none has, or if the job is none of clients.
absl::StatusOr<v1::JobConfig> WithOfferedModel(const v1::JobConfig& config) {
  const std::string stored = JoinPath(config.run_directory(), "job.textproto");
  if (!AwaitsModel(config) || !FileExists(stored)) return config;
  RUBATO_ASSIGN_OR_RETURN(const v1::JobConfig complete, LoadJobConfig(stored, {}, {.may_await_model = true}));
  return AwaitsModel(complete) ? config : WithModelOf(config, complete);
}

}  // namespace

absl::Status RunJob(const PreparedRun& run, const std::string& label, StopSignals* signals,
                    const Environment& environment) {
  // All of the job shares this machine, also clients' programs, which do not do so by themselves.
  ScheduleAsBatch();
  LocalTaskHost::Options local;
  local.config = run.config;
  if (run.resume) {
    RUBATO_ASSIGN_OR_RETURN(local.config, WithOfferedModel(run.config));
  }
  local.binaries = run.binaries;
  local.slowed = run.slowed;
  local.metrics_listen = run.metrics_listen;
  local.resume = run.resume;
  local.bind_workers = run.bind_workers;
  local.clients = run.clients;
  LocalTaskHost host(std::move(local), environment.clock, signals);
  JobSupervisor::Options options;
  options.time_limit = run.time_limit;
  options.contact_timeout = absl::Seconds(run.config.cluster().start_timeout_seconds());
  if (run.clients.has_value()) {
    // That clients may take long to come is no reason to wait for the coordinator.
    options.contact_timeout = std::min(options.contact_timeout, JobSupervisor::Options().contact_timeout);
    if (run.clients->command.has_value()) options.clients = run.config.cluster().workers();
  }
  options.restart_failed = run.restart_failed;
  if (!run.show_progress) options.on_status = [](const v1::JobStatus&) {};
  absl::Status started = host.Start();
  if (started.ok() && run.on_started != nullptr) started = run.on_started(host);
  return RunOnHost(&host, started, run.config.run_directory(), std::move(options), label, signals, environment).job;
}

ComparedRun LoadRun(const v1::JobConfig& config, const std::string& parent, const std::string& directory,
                    const absl::Status& outcome) {
  ComparedRun run;
  run.seed = config.seed();
  run.directory = directory;
  std::string path = JoinPath(parent, directory);
  absl::Status status = outcome;
  absl::StatusOr<RunRecord> record = ReadRunRecord(path);
  if (record.ok()) {
    run.record = *std::move(record);
  } else {
    status.Update(record.status());
  }
  run.summary = SummarizeRun(run.record, TargetOf(config.evaluation()));
  if (config.cluster().update_log()) {
    absl::StatusOr<AuditReport> audit = AuditRun(path);
    if (audit.ok()) {
      run.audit = audit->held() ? AuditResult::kHeld : AuditResult::kBroken;
    } else {
      status.Update(audit.status());
    }
  }
  if (!status.ok()) {
    run.summary.ok = false;
    run.summary.error = std::string(status.message());
  }
  return run;
}

Comparison NewComparison(const PreparedRun& run) {
  Comparison comparison;
  comparison.job = run.config.name();
  comparison.target = TargetOf(run.config.evaluation());
  comparison.generated_data = run.config.data().has_teacher();
  comparison.config_text = ConfigText(WithOfferedModel(run.config).value_or(run.config));
  comparison.slowed = DescribeSlowWorkers(run.slowed);
  return comparison;
}

absl::Status WriteReports(const Comparison& comparison, const std::string& directory, const Environment& environment) {
  *environment.out << "\n"
                   << FormatTable(comparison) << "\n"
                   << FormatBaselineTable(comparison) << FormatCurves(comparison, TerminalColumns() > 0) << "\n";
  if (comparison.generated_data) *environment.out << "The examples were generated, not real data.\n";
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, "summary.json"), SummaryJson(comparison)));
  std::string page = JoinPath(directory, "report.html");
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(page, HtmlReport(comparison)));
  *environment.out << "Report: " << page << std::endl;
  return absl::OkStatus();
}

absl::Status ReportRun(const PreparedRun& run, absl::Status outcome, const Environment& environment) {
  const std::string& directory = run.config.run_directory();
  ComparedRun result = LoadRun(run.config, directory, ".", outcome);
  bool broken = result.audit == AuditResult::kBroken;
  if (outcome.ok() && !result.summary.ok) outcome = absl::AbortedError(result.summary.error);
  if (!result.record.progress.empty() || !result.record.evaluations.empty()) {
    Comparison comparison = NewComparison(run);
    comparison.modes = {{ModeOfConfig(run.config).Name(), {std::move(result)}}};
    outcome.Update(WriteReports(comparison, directory, environment));
  }
  if (broken) outcome.Update(absl::DataLossError("the audit found a broken invariant: see rubato audit " + directory));
  return outcome;
}

}  // namespace rubato
