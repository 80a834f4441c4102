#include "cli/command/ssh_deploy.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "cli/command/job_run.h"
#include "cli/command/job_trace.h"
#include "cli/command/run_directory.h"
#include "cli/command/run_ending.h"
#include "cli/command/status_text.h"
#include "cli/deploy/coordinator_tunnel.h"
#include "cli/deploy/deployment_file.h"
#include "cli/deploy/package.h"
#include "cli/deploy/ssh_job.h"
#include "cli/deploy/ssh_task_host.h"
#include "cli/launch/run_security.h"
#include "cli/launch/stop_signals.h"
#include "common/config/load.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr absl::Duration kStatusTimeout = absl::Seconds(15);

// A job that was, or is to be, started, and what its commands have at hand.
struct OpenJob {
  std::unique_ptr<StopSignals> signals;
  std::unique_ptr<SshJob> job;
  // Of this machine.
  std::string run_directory;
};

absl::StatusOr<OpenJob> OpenIn(const std::string& run_directory, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(v1::Deployment deployment, LoadDeployment(run_directory));
  OpenJob open;
  RUBATO_ASSIGN_OR_RETURN(open.signals, StopSignals::Create());
  RUBATO_ASSIGN_OR_RETURN(open.job, SshJob::Create(std::move(deployment), environment.clock, open.signals.get()));
  open.run_directory = run_directory;
  return open;
}

// Calls `use` with a client of the job's coordinator and where that stands.
absl::Status WithCoordinator(
    const OpenJob& open, const Environment& environment,
    absl::FunctionRef<absl::Status(CoordinatorClient* coordinator, const v1::JobStatus& status)> use) {
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const TaskSecurity> security,
                          SecurityOfRun(open.run_directory, environment.clock->Now()));
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorTunnel> tunnel,
                          CoordinatorTunnel::Open(open.job.get(), std::move(security)));
  RUBATO_ASSIGN_OR_RETURN(const v1::JobStatus status, tunnel->AwaitStatus(kStatusTimeout, environment.clock));
  return use(tunnel->client(), status);
}

// What a command needs of a run that has not ended. FailedPrecondition: it has; says when, how, and where its weights
// are.
absl::Status CheckRuns(const std::string& run_directory) {
  const std::optional<RunEnding> ending = ReadRunEnding(run_directory);
  if (!ending.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(DescribeEnding(*ending, run_directory));
}

// Follows the job to its end, and reports it.
absl::Status FollowAndReport(SshTaskHost* host, const absl::Status& started, v1::JobConfig config,
                             absl::Duration time_limit, bool followed, OpenJob* open, const Environment& environment) {
  const JobOutcome outcome =
      FollowOnHosts(host, started, *open->job, config, time_limit, followed, "", open->signals.get(), environment);
  if (!outcome.finished.ok()) *environment.err << outcome.finished.message() << std::endl;
  PreparedRun run;
  run.config = std::move(config);
  absl::Status reported = ReportRun(run, outcome.job, environment);
  if (!outcome.finished.ok()) reported.Update(absl::UnavailableError("the job is done, but see above"));
  return reported;
}

}  // namespace

absl::Status SshUp(const SshUpOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const RemoteHosts remote, OpenRemoteHosts(options.ssh));
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, LoadConfigFor(remote, options.config_path, options.overrides));
  if (!options.run_directory.empty()) config.set_run_directory(options.run_directory);
  RUBATO_ASSIGN_OR_RETURN(v1::Deployment deployment, PlanDeployment(remote, config));
  const std::string& directory = config.run_directory();
  OpenJob open;
  RUBATO_ASSIGN_OR_RETURN(open.signals, StopSignals::Create());
  if (options.resume) RUBATO_RETURN_IF_ERROR(TakeOver(directory, open.signals.get(), environment, &deployment));
  RUBATO_ASSIGN_OR_RETURN(open.job, SshJob::Create(std::move(deployment), environment.clock, open.signals.get()));
  if (!options.resume) RUBATO_RETURN_IF_ERROR(PrepareRunDirectory(directory, options.overwrite));
  const std::string data_path = JoinPath(directory, "copied.tar.gz");
  const absl::Cleanup remove_data = [&data_path] { RemoveFile(data_path).IgnoreError(); };
  RUBATO_ASSIGN_OR_RETURN(const std::optional<Archive> data, PackCopies(remote, data_path));
  SshTaskHost host(HostOptions(remote, config, data, options.resume, "", environment), open.job.get(),
                   environment.clock);
  const absl::Status started = host.Start();
  if (options.detach && started.ok()) {
    *environment.out << "The job runs. See, follow or end it with rubato deploy ssh status, follow or down "
                     << directory << std::endl;
    return absl::OkStatus();
  }
  const absl::Duration time_limit =
      options.time_limit_seconds > 0 ? absl::Seconds(options.time_limit_seconds) : absl::InfiniteDuration();
  return FollowAndReport(&host, started, config, time_limit, /*followed=*/false, &open, environment);
}

absl::Status SshFollow(const std::string& run_directory, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config,
                          LoadJobConfig(JoinPath(run_directory, "job.textproto"), {}, {.may_await_model = true}));
  RUBATO_ASSIGN_OR_RETURN(OpenJob open, OpenIn(run_directory, environment));
  config.set_run_directory(run_directory);
  SshTaskHost host({.run_directory = run_directory}, open.job.get(), environment.clock);
  return FollowAndReport(&host, host.Start(), std::move(config), absl::InfiniteDuration(), /*followed=*/true, &open,
                         environment);
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
