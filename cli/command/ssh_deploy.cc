#include "cli/command/ssh_deploy.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/command/job_run.h"
#include "cli/command/job_trace.h"
#include "cli/command/run_directory.h"
#include "cli/command/status_text.h"
#include "cli/deploy/coordinator_tunnel.h"
#include "cli/deploy/copied_paths.h"
#include "cli/deploy/deployment_file.h"
#include "cli/deploy/hosts.h"
#include "cli/deploy/package.h"
#include "cli/deploy/ssh_follower.h"
#include "cli/deploy/ssh_job.h"
#include "cli/deploy/task_assignment.h"
#include "cli/launch/progress_display.h"
#include "cli/launch/stop_signals.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"
#include "common/random.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr absl::Duration kStatusPatience = absl::Seconds(15);

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

// Calls `use` with the way to the job's coordinator and where that stands.
absl::Status WithCoordinator(
    const OpenJob& open, const Environment& environment,
    absl::FunctionRef<absl::Status(CoordinatorClient* coordinator, const v1::JobStatus& status)> use) {
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorTunnel> tunnel, CoordinatorTunnel::Open(open.job.get()));
  RUBATO_ASSIGN_OR_RETURN(const v1::JobStatus status, tunnel->AwaitStatus(kStatusPatience, environment.clock));
  return use(tunnel->client(), status);
}

absl::StatusOr<v1::Deployment> PlanDeployment(const SshUpOptions& options, const v1::JobConfig& config) {
  v1::Deployment deployment;
  RUBATO_ASSIGN_OR_RETURN(*deployment.mutable_hosts(), LoadHosts(options.hosts_path));
  const absl::StatusOr<std::vector<v1::DeployedTask>> tasks = AssignTasks(deployment.hosts(), config.cluster());
  if (!tasks.ok()) return Annotate(tasks.status(), options.hosts_path);
  deployment.mutable_tasks()->Add(tasks->begin(), tasks->end());
  deployment.set_job_id(absl::StrFormat("%s-%08x", config.name(), SystemRandom64() & 0xffffffff));
  deployment.mutable_ssh()->set_program(options.ssh_program);
  deployment.mutable_ssh()->set_identity(options.identity);
  for (const std::string& option : options.ssh_options) deployment.mutable_ssh()->add_options(option);
  return deployment;
}

// Up to the job that runs. Once the deployment has been saved there may be something to stop; `*begun` says so.
absl::Status Begin(const SshUpOptions& options, const v1::JobConfig& config, const Package& package,
                   const Archive* data, SshJob* job, const Environment& environment, bool* begun) {
  HostNeeds needs;
  needs.machine = package.machine;
  needs.glibc = package.glibc;
  needs.free_kib = options.min_free_mib * 1024;
  if (config.training().device() == v1::TrainingConfig::CUDA) needs.cards = config.training().cards();
  needs.clock_offset_max = absl::Seconds(options.clock_offset_max_seconds);
  std::ostream& out = *environment.out;
  out << "Checking " << job->hosts().size() << " hosts" << std::endl;
  RUBATO_RETURN_IF_ERROR(job->Check(needs, package, data));
  const std::string& directory = config.run_directory();
  RUBATO_RETURN_IF_ERROR(SaveDeployment(job->deployment(), directory));
  *begun = true;
  out << "Copying what they do not have" << std::endl;
  RUBATO_RETURN_IF_ERROR(job->Copy(package, data));
  out << "Starting job " << job->deployment().job_id() << std::endl;
  v1::JobConfig on_hosts = config;
  on_hosts.set_run_directory(job->run_directory());
  const std::string config_path = JoinPath(directory, "job.textproto");
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(config_path, ConfigText(on_hosts)));
  RUBATO_RETURN_IF_ERROR(job->Start(on_hosts, config_path, package));
  return SaveDeployment(job->deployment(), directory);
}

absl::Status Follow(const v1::JobConfig& config, double time_limit_seconds, OpenJob* open,
                    const Environment& environment) {
  ProgressDisplay display(environment.out, TerminalColumns(), "");
  SshFollower::Options options;
  if (time_limit_seconds > 0) options.time_limit = absl::Seconds(time_limit_seconds);
  options.contact_timeout = absl::Seconds(config.cluster().start_timeout_seconds());
  options.on_status = [&](const v1::JobStatus& status) { display.Show(status, environment.clock->Now()); };
  options.on_event = [&](absl::string_view text) { display.Print(text); };
  return SshFollower(std::move(options), open->job.get(), environment.clock, open->signals.get()).Run();
}

// Leaves no process and brings what was written. The first error is that of the job.
absl::Status Finish(absl::Status outcome, const std::string& directory, SshJob* job, const Environment& environment) {
  for (const absl::Status& status : {job->Stop(), job->Fetch(directory)}) {
    if (status.ok()) continue;
    *environment.err << status.message() << std::endl;
    outcome.Update(absl::UnavailableError("the job is done, but see above"));
  }
  return outcome;
}

absl::Status FinishAndReport(v1::JobConfig config, const absl::Status& outcome, const std::string& directory,
                             SshJob* job, const Environment& environment) {
  const absl::Status finished = Finish(outcome, directory, job, environment);
  PreparedRun run;
  run.config = std::move(config);
  run.config.set_run_directory(directory);
  absl::Status reported = ReportRun(run, outcome, environment);
  reported.Update(finished);
  return reported;
}

}  // namespace

absl::Status SshUp(const SshUpOptions& options, const Environment& environment) {
  if (options.package.empty()) {
    return absl::InvalidArgumentError("--package: value empty; allowed: what ./rubato.sh package has made");
  }
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, LoadJobConfig(options.config_path, options.overrides));
  UseCopiedPaths(options.copies, &config);
  if (!options.run_directory.empty()) config.set_run_directory(options.run_directory);
  RUBATO_ASSIGN_OR_RETURN(v1::Deployment deployment, PlanDeployment(options, config));
  RUBATO_ASSIGN_OR_RETURN(const Package package, OpenPackage(options.package));
  RUBATO_ASSIGN_OR_RETURN(OpenJob open, Open(std::move(deployment), environment));
  const std::string& directory = config.run_directory();
  RUBATO_RETURN_IF_ERROR(PrepareRunDirectory(directory, options.overwrite));
  std::optional<Archive> data;
  const std::string data_path = JoinPath(directory, "copied.tar.gz");
  if (!options.copies.empty()) {
    absl::StatusOr<Archive> packed = PackData(options.copies, data_path);
    if (!packed.ok()) {
      RemoveFile(data_path).IgnoreError();
      return packed.status();
    }
    data = *std::move(packed);
  }
  bool begun = false;
  const absl::Status started =
      Begin(options, config, package, data.has_value() ? &*data : nullptr, open.job.get(), environment, &begun);
  RemoveFile(data_path).IgnoreError();
  if (!started.ok()) return begun ? Finish(started, directory, open.job.get(), environment) : started;
  if (options.detach) {
    *environment.out << "The job runs. See, follow or end it with rubato deploy ssh status, follow or down "
                     << directory << std::endl;
    return absl::OkStatus();
  }
  const absl::Status outcome = Follow(config, options.time_limit_seconds, &open, environment);
  return FinishAndReport(config, outcome, directory, open.job.get(), environment);
}

absl::Status SshFollow(const std::string& run_directory, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, LoadJobConfig(JoinPath(run_directory, "job.textproto"), {}));
  RUBATO_ASSIGN_OR_RETURN(OpenJob open, OpenIn(run_directory, environment));
  const absl::Status outcome = Follow(config, 0, &open, environment);
  return FinishAndReport(config, outcome, run_directory, open.job.get(), environment);
}

absl::Status SshStatus(const std::string& run_directory, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, OpenIn(run_directory, environment));
  *environment.out << open.job->DescribeTasks() << std::flush;
  return WithCoordinator(open, environment, [&](CoordinatorClient*, const v1::JobStatus& status) {
    *environment.out << "\n" << StatusText(status) << std::flush;
    return absl::OkStatus();
  });
}

absl::Status SshSwitch(const std::string& run_directory, const SwitchOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, OpenIn(run_directory, environment));
  return WithCoordinator(open, environment, [&](CoordinatorClient* coordinator, const v1::JobStatus&) {
    return SwitchJob(coordinator, options, environment);
  });
}

absl::Status SshStop(const std::string& run_directory, const StopOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const OpenJob open, OpenIn(run_directory, environment));
  return WithCoordinator(open, environment, [&](CoordinatorClient* coordinator, const v1::JobStatus&) {
    return StopJob(coordinator, options, open.job->deployment().coordinator(), environment);
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
