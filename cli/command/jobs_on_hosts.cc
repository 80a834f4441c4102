#include "cli/command/jobs_on_hosts.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/command/run_directory.h"
#include "cli/command/run_ending.h"
#include "cli/deploy/copied_paths.h"
#include "cli/deploy/deployment_file.h"
#include "cli/deploy/hosts.h"
#include "cli/deploy/task_assignment.h"
#include "cli/launch/job_supervisor.h"
#include "cli/launch/worker_command.h"
#include "common/config/awaited_model.h"
#include "common/config/load.h"
#include "common/random.h"
#include "common/status.h"

namespace rubato {
namespace {

// Over slow lines, and with hosts that are asked one by one twice a second.
constexpr absl::Duration kGrace = absl::Seconds(10);

HostNeeds NeedsOf(const RemoteHosts& remote, const v1::JobConfig& config) {
  HostNeeds needs;
  needs.machine = remote.package.machine;
  needs.glibc = remote.package.glibc;
  needs.free_kib = remote.options.min_free_mib * 1024;
  if (config.training().device() == v1::TrainingConfig::CUDA) needs.gpus = config.training().gpus();
  needs.clock_offset_max = absl::Seconds(remote.options.clock_offset_max_seconds);
  return needs;
}

}  // namespace

CLI::Option* AddSshOptions(CLI::App* command, SshOptions* options) {
  CLI::Option* const package = command->add_option("--package", options->package, "What ./rubato.sh package has made");
  command
      ->add_option(
          "--copy", options->copies,
          "A file or folder, by a relative path, that workers and evaluators find by the same path; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--identity", options->identity, "File of the private key to log in with");
  command->add_option("--ssh_option", options->ssh_options, "An option for ssh's -o; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--ssh", options->program, "The ssh program; otherwise the one in the PATH");
  command->add_option("--min_free_mib", options->min_free_mib, "MiB that must be free in every host's directory")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  command
      ->add_option("--max_clock_offset", options->clock_offset_max_seconds,
                   "Seconds by which a host's clock may differ from this one's")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  return package;
}

absl::StatusOr<RemoteHosts> OpenRemoteHosts(const SshOptions& options) {
  if (options.package.empty()) {
    return absl::InvalidArgumentError("--package: value empty; allowed: what ./rubato.sh package has made");
  }
  RemoteHosts remote = {.options = options, .hosts = {}, .package = {}};
  RUBATO_ASSIGN_OR_RETURN(remote.hosts, LoadHosts(options.hosts_path));
  if (!options.command.empty()) {
    RUBATO_ASSIGN_OR_RETURN(const std::vector<std::string> words, SplitCommand(options.command, "--command"));
    remote.hosts.mutable_worker_program()->mutable_command()->Assign(words.begin(), words.end());
  }
  RUBATO_ASSIGN_OR_RETURN(remote.package, OpenPackage(options.package));
  return remote;
}

absl::StatusOr<v1::JobConfig> LoadConfigFor(const RemoteHosts& remote, const std::string& config_path,
                                            const std::vector<std::string>& overrides) {
  const bool is_client_job = remote.hosts.has_worker_program();
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config,
                          LoadJobConfig(config_path, overrides, {.may_await_model = is_client_job}));
  if (is_client_job && !IsClientJob(config)) {
    return absl::InvalidArgumentError(absl::StrCat(config_path,
                                                   " has a model, data or an optimizer; allowed: none of them if "
                                                   "the workers are a program (--command, worker_program)"));
  }
  return config;
}

absl::StatusOr<v1::Deployment> PlanDeployment(const RemoteHosts& remote, const v1::JobConfig& config) {
  v1::Deployment deployment;
  *deployment.mutable_hosts() = remote.hosts;
  const absl::StatusOr<std::vector<v1::DeployedTask>> tasks = AssignTasks(deployment.hosts(), config.cluster());
  if (!tasks.ok()) return Annotate(tasks.status(), remote.options.hosts_path);
  deployment.mutable_tasks()->Add(tasks->begin(), tasks->end());
  deployment.set_job_id(absl::StrFormat("%s-%08x", config.name(), SystemRandom64() & 0xffffffff));
  deployment.mutable_ssh()->set_program(remote.options.program);
  deployment.mutable_ssh()->set_identity(remote.options.identity);
  for (const std::string& option : remote.options.ssh_options) deployment.mutable_ssh()->add_options(option);
  return deployment;
}

absl::Status TakeOver(const std::string& run_directory, StopSignals* signals, const Environment& environment,
                      v1::Deployment* deployment) {
  const std::optional<RunEnding> ending = ReadRunEnding(run_directory);
  if (ending.has_value() && ending->ok) {
    return absl::FailedPreconditionError(
        absl::StrCat("--resume: there is nothing left to do. ", DescribeEnding(*ending, run_directory)));
  }
  RUBATO_ASSIGN_OR_RETURN(v1::Deployment earlier, LoadDeployment(run_directory));
  deployment->set_job_id(earlier.job_id());
  // Its hosts may be others.
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<SshJob> job,
                          SshJob::Create(std::move(earlier), environment.clock, signals));
  return job->Stop();
}

absl::StatusOr<std::optional<Archive>> PackCopies(const RemoteHosts& remote, const std::string& output) {
  if (remote.options.copies.empty()) return std::nullopt;
  return PackData(remote.options.copies, output);
}

SshTaskHost::Options HostOptions(const RemoteHosts& remote, const v1::JobConfig& config,
                                 const std::optional<Archive>& data, bool resume, const std::string& label,
                                 const Environment& environment) {
  SshTaskHost::Options options;
  options.run_directory = config.run_directory();
  options.resume = resume;
  options.on_step = [&environment, label](absl::string_view text) { *environment.out << label << text << std::endl; };
  SshTaskHost::Launch& launch = options.launch.emplace();
  launch.config = config;
  UseCopiedPaths(remote.options.copies, &launch.config);
  launch.package = remote.package;
  launch.data = data;
  launch.needs = NeedsOf(remote, config);
  return options;
}

JobOutcome FollowOnHosts(SshTaskHost* host, const absl::Status& started, const SshJob& job, const v1::JobConfig& config,
                         absl::Duration time_limit, bool followed, const std::string& label, StopSignals* signals,
                         const Environment& environment) {
  JobSupervisor::Options options;
  options.followed = followed;
  options.time_limit = time_limit;
  options.contact_timeout = absl::Seconds(config.cluster().start_timeout_seconds());
  options.grace = kGrace;
  if (job.deployment().hosts().has_worker_program()) options.clients = config.cluster().workers();
  return RunOnHost(host, started, config.run_directory(), std::move(options), label, signals, environment);
}

absl::Status RunJobOnHosts(const RemoteHosts& remote, const std::optional<Archive>& data, const PreparedRun& run,
                           const std::string& label, StopSignals* signals, const Environment& environment) {
  const std::string& directory = run.config.run_directory();
  RUBATO_ASSIGN_OR_RETURN(v1::Deployment deployment, PlanDeployment(remote, run.config));
  const bool goes_on = run.resume && LoadDeployment(directory).ok();
  if (goes_on) RUBATO_RETURN_IF_ERROR(TakeOver(directory, signals, environment, &deployment));
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<SshJob> job,
                          SshJob::Create(std::move(deployment), environment.clock, signals));
  if (!goes_on) RUBATO_RETURN_IF_ERROR(PrepareRunDirectory(directory, /*overwrite=*/run.resume));
  SshTaskHost host(HostOptions(remote, run.config, data, goes_on, label, environment), job.get(), environment.clock);
  const JobOutcome outcome = FollowOnHosts(&host, host.Start(), *job, run.config, run.time_limit, /*followed=*/false,
                                           label, signals, environment);
  absl::Status status = outcome.job;
  status.Update(outcome.finished);
  if (status.ok()) status = job->Remove();
  return status;
}

}  // namespace rubato
