#include "cli/command/ssh_deploy.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/command/job_run.h"
#include "cli/command/job_trace.h"
#include "cli/command/run_directory.h"
#include "cli/command/run_ending.h"
#include "cli/command/status_text.h"
#include "cli/deploy/coordinator_tunnel.h"
#include "cli/deploy/copied_paths.h"
#include "cli/deploy/deployment_file.h"
#include "cli/deploy/hosts.h"
#include "cli/deploy/package.h"
#include "cli/deploy/ssh_job.h"
#include "cli/deploy/ssh_task_host.h"
#include "cli/deploy/task_assignment.h"
#include "cli/launch/job_supervisor.h"
#include "cli/launch/stop_signals.h"
#include "cli/launch/worker_command.h"
#include "common/config/awaited_model.h"
#include "common/config/load.h"
#include "common/random.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr absl::Duration kStatusTimeout = absl::Seconds(15);
// Over slow lines, and with hosts that are asked one by one twice a second.
constexpr absl::Duration kGrace = absl::Seconds(10);

// A job that was, or is to be, started, and what its commands have at hand.
struct OpenJob {
  std::unique_ptr<StopSignals> signals;
  std::unique_ptr<SshJob> job;
};

absl::StatusOr<OpenJob> Open(v1::Deployment deployment, const Environment& environment) {
  OpenJob open;
  RUBATO_ASSIGN_OR_RETURN(open.signals, StopSignals::Create());
  RUBATO_ASSIGN_OR_RETURN(open.job, SshJob::Create(std::move(deployment), environment.clock, open.signals.get()));
  return open;
}

absl::StatusOr<OpenJob> OpenIn(const std::string& run_directory, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(v1::Deployment deployment, LoadDeployment(run_directory));
  return Open(std::move(deployment), environment);
}

// Calls `use` with a client of the job's coordinator and where that stands.
absl::Status WithCoordinator(
    const OpenJob& open, const Environment& environment,
    absl::FunctionRef<absl::Status(CoordinatorClient* coordinator, const v1::JobStatus& status)> use) {
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorTunnel> tunnel, CoordinatorTunnel::Open(open.job.get()));
  RUBATO_ASSIGN_OR_RETURN(const v1::JobStatus status, tunnel->AwaitStatus(kStatusTimeout, environment.clock));
  return use(tunnel->client(), status);
}

// The hosts file, with the command of the workers if one is given.
absl::StatusOr<v1::HostsConfig> LoadHostsOf(const SshUpOptions& options) {
  RUBATO_ASSIGN_OR_RETURN(v1::HostsConfig hosts, LoadHosts(options.hosts_path));
  if (options.command.empty()) return hosts;
  RUBATO_ASSIGN_OR_RETURN(const std::vector<std::string> words, SplitCommand(options.command, "--command"));
  hosts.mutable_worker_program()->mutable_command()->Assign(words.begin(), words.end());
  return hosts;
}

// A config without a model is one whose workers are somebody's program, and the other way round.
absl::StatusOr<v1::JobConfig> LoadConfigOf(const SshUpOptions& options, const v1::HostsConfig& hosts) {
  const bool is_client_job = hosts.has_worker_program();
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config,
                          LoadJobConfig(options.config_path, options.overrides, {.may_await_model = is_client_job}));
  if (is_client_job && !IsClientJob(config)) {
    return absl::InvalidArgumentError(absl::StrCat(options.config_path,
                                                   " has a model, data or an optimizer; allowed: none of them if "
                                                   "the workers are a program (--command, worker_program)"));
  }
  return config;
}

absl::StatusOr<v1::Deployment> PlanDeployment(const SshUpOptions& options, const v1::HostsConfig& hosts,
                                              const v1::JobConfig& config) {
  v1::Deployment deployment;
  *deployment.mutable_hosts() = hosts;
  const absl::StatusOr<std::vector<v1::DeployedTask>> tasks = AssignTasks(deployment.hosts(), config.cluster());
  if (!tasks.ok()) return Annotate(tasks.status(), options.hosts_path);
  deployment.mutable_tasks()->Add(tasks->begin(), tasks->end());
  deployment.set_job_id(absl::StrFormat("%s-%08x", config.name(), SystemRandom64() & 0xffffffff));
  deployment.mutable_ssh()->set_program(options.ssh_program);
  deployment.mutable_ssh()->set_identity(options.identity);
  for (const std::string& option : options.ssh_options) deployment.mutable_ssh()->add_options(option);
  return deployment;
}

HostNeeds NeedsOf(const SshUpOptions& options, const v1::JobConfig& config, const Package& package) {
  HostNeeds needs;
  needs.machine = package.machine;
  needs.glibc = package.glibc;
  needs.free_kib = options.min_free_mib * 1024;
  if (config.training().device() == v1::TrainingConfig::CUDA) needs.gpus = config.training().gpus();
  needs.clock_offset_max = absl::Seconds(options.clock_offset_max_seconds);
  return needs;
}

// What a command needs of a run that has not ended. FailedPrecondition: it has; says when, how, and where its weights
// are.
absl::Status CheckRuns(const std::string& run_directory) {
  const std::optional<RunEnding> ending = ReadRunEnding(run_directory);
  if (!ending.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(DescribeEnding(*ending, run_directory));
}

// Gives `deployment` the job's id of an earlier one that goes on, of which nothing runs any more afterwards.
absl::Status TakeOver(const std::string& run_directory, v1::Deployment* deployment, const Environment& environment) {
  const std::optional<RunEnding> ending = ReadRunEnding(run_directory);
  if (ending.has_value() && ending->ok) {
    return absl::FailedPreconditionError(
        absl::StrCat("--resume: there is nothing left to do. ", DescribeEnding(*ending, run_directory)));
  }
  RUBATO_ASSIGN_OR_RETURN(v1::Deployment earlier, LoadDeployment(run_directory));
  deployment->set_job_id(earlier.job_id());
  // Its hosts may be others.
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, Open(std::move(earlier), environment));
  return open.job->Stop();
}

// Follows the job to its end, leaves no process, brings what was written, and reports it.
absl::Status FollowAndReport(SshTaskHost* host, const absl::Status& started, v1::JobConfig config,
                             double time_limit_seconds, bool followed, OpenJob* open, const Environment& environment) {
  JobSupervisor::Options options;
  options.followed = followed;
  if (time_limit_seconds > 0) options.time_limit = absl::Seconds(time_limit_seconds);
  options.contact_timeout = absl::Seconds(config.cluster().start_timeout_seconds());
  options.grace = kGrace;
  if (open->job->deployment().hosts().has_worker_program()) options.clients = config.cluster().workers();
  const JobOutcome outcome =
      RunOnHost(host, started, config.run_directory(), std::move(options), "", open->signals.get(), environment);
  if (!outcome.finished.ok()) *environment.err << outcome.finished.message() << std::endl;
  PreparedRun run;
  run.config = std::move(config);
  absl::Status reported = ReportRun(run, outcome.job, environment);
  if (!outcome.finished.ok()) reported.Update(absl::UnavailableError("the job is done, but see above"));
  return reported;
}

}  // namespace

absl::Status SshUp(const SshUpOptions& options, const Environment& environment) {
  if (options.package.empty()) {
    return absl::InvalidArgumentError("--package: value empty; allowed: what ./rubato.sh package has made");
  }
  RUBATO_ASSIGN_OR_RETURN(const v1::HostsConfig hosts, LoadHostsOf(options));
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, LoadConfigOf(options, hosts));
  UseCopiedPaths(options.copies, &config);
  if (!options.run_directory.empty()) config.set_run_directory(options.run_directory);
  RUBATO_ASSIGN_OR_RETURN(v1::Deployment deployment, PlanDeployment(options, hosts, config));
  RUBATO_ASSIGN_OR_RETURN(const Package package, OpenPackage(options.package));
  const std::string& directory = config.run_directory();
  if (options.resume) RUBATO_RETURN_IF_ERROR(TakeOver(directory, &deployment, environment));
  RUBATO_ASSIGN_OR_RETURN(OpenJob open, Open(std::move(deployment), environment));
  if (!options.resume) RUBATO_RETURN_IF_ERROR(PrepareRunDirectory(directory, options.overwrite));
  SshTaskHost::Options host_options;
  host_options.run_directory = directory;
  host_options.resume = options.resume;
  host_options.on_step = [&environment](absl::string_view text) { *environment.out << text << std::endl; };
  SshTaskHost::Launch& launch = host_options.launch.emplace();
  const std::string data_path = JoinPath(directory, "copied.tar.gz");
  const absl::Cleanup remove_data = [&data_path] { RemoveFile(data_path).IgnoreError(); };
  if (!options.copies.empty()) {
    RUBATO_ASSIGN_OR_RETURN(launch.data, PackData(options.copies, data_path));
  }
  launch.config = config;
  launch.package = package;
  launch.needs = NeedsOf(options, config, package);
  SshTaskHost host(std::move(host_options), open.job.get(), environment.clock);
  const absl::Status started = host.Start();
  if (options.detach && started.ok()) {
    *environment.out << "The job runs. See, follow or end it with rubato deploy ssh status, follow or down "
                     << directory << std::endl;
    return absl::OkStatus();
  }
  return FollowAndReport(&host, started, config, options.time_limit_seconds, /*followed=*/false, &open, environment);
}

absl::Status SshFollow(const std::string& run_directory, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config,
                          LoadJobConfig(JoinPath(run_directory, "job.textproto"), {}, {.may_await_model = true}));
  RUBATO_ASSIGN_OR_RETURN(OpenJob open, OpenIn(run_directory, environment));
  config.set_run_directory(run_directory);
  SshTaskHost host({.run_directory = run_directory}, open.job.get(), environment.clock);
  return FollowAndReport(&host, host.Start(), std::move(config), 0, /*followed=*/true, &open, environment);
}

absl::Status SshStatus(const std::string& run_directory, const Environment& environment) {
  if (const std::optional<RunEnding> ending = ReadRunEnding(run_directory)) {
    *environment.out << DescribeEnding(*ending, run_directory) << std::endl;
    return absl::OkStatus();
  }
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, OpenIn(run_directory, environment));
  *environment.out << open.job->DescribeTasks() << std::flush;
  return WithCoordinator(open, environment, [&](CoordinatorClient*, const v1::JobStatus& status) {
    *environment.out << "\n" << StatusText(status) << std::flush;
    return absl::OkStatus();
  });
}

absl::Status SshSwitch(const std::string& run_directory, const SwitchOptions& options, const Environment& environment) {
  RUBATO_RETURN_IF_ERROR(CheckRuns(run_directory));
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, OpenIn(run_directory, environment));
  return WithCoordinator(open, environment, [&](CoordinatorClient* coordinator, const v1::JobStatus&) {
    return SwitchJob(coordinator, options, environment);
  });
}

absl::Status SshStop(const std::string& run_directory, const StopOptions& options, const Environment& environment) {
  RUBATO_RETURN_IF_ERROR(CheckRuns(run_directory));
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, OpenIn(run_directory, environment));
  return WithCoordinator(open, environment, [&](CoordinatorClient* coordinator, const v1::JobStatus&) {
    return StopJob(coordinator, options, open.job->deployment().coordinator(), environment);
  });
}

absl::Status SshCheckpoint(const std::string& run_directory, const CheckpointNowOptions& options,
                           const Environment& environment) {
  RUBATO_RETURN_IF_ERROR(CheckRuns(run_directory));
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, OpenIn(run_directory, environment));
  return WithCoordinator(open, environment, [&](CoordinatorClient* coordinator, const v1::JobStatus&) {
    return WriteCheckpointNow(coordinator, options, environment);
  });
}

absl::Status SshTrace(const std::string& run_directory, double seconds, const std::string& output,
                      const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, OpenIn(run_directory, environment));
  uint64_t id = 0;
  RUBATO_RETURN_IF_ERROR(WithCoordinator(
      open, environment, [&](CoordinatorClient* coordinator, const v1::JobStatus& status) -> absl::Status {
        if (status.phase() != v1::JobStatus::TRAINING) {
          return absl::FailedPreconditionError(
              absl::StrCat("the job does not train now, it is ", v1::JobStatus::Phase_Name(status.phase())));
        }
        RUBATO_ASSIGN_OR_RETURN(id, RecordTrace(coordinator, seconds, environment));
        return absl::OkStatus();
      }));
  RUBATO_RETURN_IF_ERROR(open.job->Fetch(run_directory, TraceDirectoryOf("", id)));
  return MergeTraces(TraceDirectoryOf(run_directory, id), output, environment);
}

absl::Status SshLogs(const std::string& run_directory, const std::vector<std::string>& tasks, int lines,
                     const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, OpenIn(run_directory, environment));
  std::string text;
  const absl::Status status = open.job->ReadLogs(tasks, lines, &text);
  *environment.out << text << std::flush;
  return status;
}

absl::Status SshDown(const std::string& run_directory, bool remove, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, OpenIn(run_directory, environment));
  const absl::Status stopped = open.job->Stop();
  absl::Status status = stopped;
  const absl::Status fetched = open.job->Fetch(run_directory);
  status.Update(fetched);
  if (stopped.ok()) *environment.out << "No process of job " << open.job->deployment().job_id() << " is left.\n";
  if (fetched.ok()) *environment.out << "Its run directory is in " << run_directory << ".\n";
  if (remove && status.ok()) status = open.job->Remove();
  return status;
}

}  // namespace rubato
