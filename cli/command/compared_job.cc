#include "cli/command/compared_job.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/command/run_directory.h"
#include "cli/launch/worker_command.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// Of what runs on hosts: there as long as runs are made.
struct OnHosts {
  ~OnHosts() {
    if (data.has_value()) RemoveFile(data->path).IgnoreError();
  }

  RemoteHosts remote;
  std::optional<Archive> data;
};

absl::Status CheckNotGiven(bool given, const std::string& flag, absl::string_view allowed) {
  if (!given) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, " is given; allowed: ", allowed));
}

// What a program that trains a client's model learns of the run.
std::string SeedVariable(const PreparedRun& run) { return absl::StrCat("RUBATO_SEED=", run.config.seed()); }

absl::StatusOr<PreparedRun> PrepareHere(const ComparedJobOptions& options, const Environment& environment) {
  if (options.command.empty()) {
    constexpr char kNeedsCommand[] = "only with --command; the config says it";
    RUBATO_RETURN_IF_ERROR(CheckNotGiven(options.client.workers.has_value(), "--workers", kNeedsCommand));
    RUBATO_RETURN_IF_ERROR(CheckNotGiven(options.client.servers.has_value(), "--servers", kNeedsCommand));
    return PrepareRun(options.run, environment);
  }
  RUBATO_ASSIGN_OR_RETURN(const std::vector<std::string> words, SplitCommand(options.command, "--command"));
  LocalTaskHost::Clients clients;
  RUBATO_ASSIGN_OR_RETURN(clients.command, MakeWorkerCommand(words, "--command", environment.program));
  ClientJobOptions client = options.client;
  client.config_path = options.run.config_path;
  client.overrides = options.run.overrides;
  RUBATO_ASSIGN_OR_RETURN(PreparedRun base, PrepareClientRun(client, absl::StrCat(NameOfCommand(words), "-compare"),
                                                             options.run.launch, clients, environment));
  ShareCores(base.config.cluster().workers(), &*base.clients->command);
  return base;
}

absl::StatusOr<PreparedRun> PrepareOnHosts(const ComparedJobOptions& options, OnHosts* hosts) {
  const LaunchOptions& launch = options.run.launch;
  if (options.run.config_path.empty()) return absl::InvalidArgumentError("CONFIG is required with --hosts");
  SshOptions ssh = options.ssh;
  ssh.command = options.command;
  RUBATO_ASSIGN_OR_RETURN(hosts->remote, OpenRemoteHosts(ssh));
  RUBATO_ASSIGN_OR_RETURN(PreparedRun run, LaunchedRun(launch));
  RUBATO_ASSIGN_OR_RETURN(run.config, LoadConfigFor(hosts->remote, options.run.config_path, options.run.overrides));
  if (!launch.run_directory.empty()) run.config.set_run_directory(launch.run_directory);
  const std::string& directory = run.config.run_directory();
  // Before anything is deleted.
  RUBATO_RETURN_IF_ERROR(PlanDeployment(hosts->remote, run.config).status());
  if (!run.resume) RUBATO_RETURN_IF_ERROR(PrepareRunDirectory(directory, launch.overwrite));
  RUBATO_ASSIGN_OR_RETURN(hosts->data, PackCopies(hosts->remote, JoinPath(directory, "copied.tar.gz")));
  return run;
}

}  // namespace

absl::StatusOr<ComparedJob> PrepareComparedJob(const ComparedJobOptions& options, StopSignals* signals,
                                               const Environment& environment) {
  ComparedJob job;
  if (options.ssh.hosts_path.empty()) {
    RUBATO_ASSIGN_OR_RETURN(job.base, PrepareHere(options, environment));
    job.run_job = [signals, &environment](PreparedRun run, const std::string& label) {
      if (run.clients.has_value()) run.clients->command->variables.push_back(SeedVariable(run));
      return RunJob(run, label, signals, environment);
    };
    return job;
  }
  auto hosts = std::make_shared<OnHosts>();
  RUBATO_ASSIGN_OR_RETURN(job.base, PrepareOnHosts(options, hosts.get()));
  job.run_job = [signals, &environment, hosts](const PreparedRun& run, const std::string& label) {
    RemoteHosts remote = hosts->remote;
    if (remote.hosts.has_worker_program()) remote.hosts.mutable_worker_program()->add_environment(SeedVariable(run));
    return RunJobOnHosts(remote, hosts->data, run, label, signals, environment);
  };
  return job;
}

}  // namespace rubato
