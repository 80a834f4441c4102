#include "cli/deploy/ssh_job.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/deploy/hosts.h"
#include "cli/deploy/shell.h"
#include "cli/deploy/task_assignment.h"
#include "cli/launch/gpu_assignment.h"
#include "cli/launch/local_program.h"
#include "cli/launch/task_commands.h"
#include "cli/launch/worker_command.h"
#include "common/security/identity.h"
#include "common/security/secret_file.h"
#include "common/security/sender.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

constexpr absl::Duration kAnswer = absl::Seconds(30);
constexpr absl::Duration kCopy = absl::Minutes(30);
constexpr int kGraceSeconds = 10;
constexpr int kListenSeconds = 30;

// The messages of those that failed, as one status; OK when none did.
absl::Status Together(absl::StatusCode code, absl::string_view what, const std::vector<std::string>& failures) {
  if (failures.empty()) return absl::OkStatus();
  return absl::Status(code, absl::StrCat(what, "\n  ", absl::StrJoin(failures, "\n  ")));
}

// The same for the results of calls. Cancelled when a signal ended one of them.
absl::Status TogetherOf(const std::vector<SshResult>& results, absl::StatusCode code, absl::string_view what) {
  std::vector<std::string> failures;
  for (const SshResult& result : results) {
    if (absl::IsCancelled(result.status)) return absl::CancelledError("stopped by a signal");
    if (!result.status.ok()) failures.emplace_back(result.status.message());
  }
  return Together(code, what, failures);
}

std::string StoredPackage(const Archive& archive) { return absl::StrCat("packages/", archive.id, "/complete"); }
std::string StoredData(const Archive& archive) { return absl::StrCat("copied/", archive.id); }

// An address that stands for all of a host's.
std::string AnyAddress(const v1::HostConfig& host) {
  return absl::StrContains(host.address(), ':') ? "[::]" : "0.0.0.0";
}

// Of a host, if a worker takes so many. The evaluator takes one.
uint32_t GpusNeeded(const std::vector<v1::DeployedTask>& tasks, int host, uint32_t of_a_worker) {
  uint32_t gpus = 0;
  for (const v1::DeployedTask& task : tasks) {
    if (static_cast<int>(task.host()) != host || task.role() == v1::TaskId::SERVER) continue;
    gpus = std::max(gpus, task.role() == v1::TaskId::WORKER ? of_a_worker : std::min(1u, of_a_worker));
  }
  return gpus;
}

// When it is a worker's or evaluator's turn to take GPUs of its host: workers come first.
uint32_t GpuTurn(const v1::Deployment& deployment, const v1::DeployedTask& task) {
  if (task.role() == v1::TaskId::WORKER) return task.slot();
  const auto workers =
      std::count_if(deployment.tasks().begin(), deployment.tasks().end(), [&task](const v1::DeployedTask& other) {
        return other.host() == task.host() && other.role() == v1::TaskId::WORKER;
      });
  return task.slot() + static_cast<uint32_t>(workers);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SshJob>> SshJob::Create(v1::Deployment deployment, const Clock* clock,
                                                       StopSignals* signals) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Ssh> ssh, Ssh::Create(deployment.hosts(), deployment.ssh(), clock, signals));
  return absl::WrapUnique(new SshJob(std::move(deployment), std::move(ssh), clock));
}

SshJob::SshJob(v1::Deployment deployment, std::unique_ptr<Ssh> ssh, const Clock* clock)
    : deployment_(std::move(deployment)), ssh_(std::move(ssh)), clock_(clock) {
  std::set<int> hosts;
  for (const v1::DeployedTask& task : deployment_.tasks()) hosts.insert(static_cast<int>(task.host()));
  hosts_.assign(hosts.begin(), hosts.end());
}

std::string SshJob::run_directory() const { return absl::StrCat("jobs/", deployment_.job_id(), "/run"); }

std::string SshJob::HostOf(v1::TaskId::Role role, uint32_t index) const {
  for (const v1::DeployedTask& task : deployment_.tasks()) {
    if (task.role() == role && task.index() == index) return ssh_->HostName(static_cast<int>(task.host()));
  }
  return "";
}

SshCall SshJob::Call(int host, HostScript script, const Variables& variables, bool marked) const {
  Variables all = {{"base", deployment_.hosts().hosts(host).directory()}, {"job", deployment_.job_id()}};
  all.insert(all.end(), variables.begin(), variables.end());
  SshCall call;
  call.host = host;
  call.script = ScriptText(script, all);
  if (marked) call.environment = absl::StrCat("RUBATO_JOB=", deployment_.job_id());
  return call;
}

absl::Status SshJob::Check(const HostNeeds& needs, const Package& package, const Archive* data) {
  const std::vector<v1::DeployedTask> tasks(deployment_.tasks().begin(), deployment_.tasks().end());
  const std::string stored = absl::StrCat(StoredPackage(package.archive), data ? " " + StoredData(*data) : "");
  std::vector<SshCall> calls;
  for (int host : hosts_) {
    const std::string ports = absl::StrJoin(FixedPorts(deployment_.hosts(), tasks, host), " ");
    calls.push_back(Call(host, HostScript::kProbe, {{"ports", ports}, {"stored", stored}}, false));
  }
  const absl::Time before = clock_->Now();
  const std::vector<SshResult> results = ssh_->Run(calls, kAnswer);
  const absl::Time after = clock_->Now();
  std::vector<std::string> failures;
  for (size_t i = 0; i < results.size(); ++i) {
    if (absl::IsCancelled(results[i].status)) return absl::CancelledError("stopped by a signal");
    if (!results[i].status.ok()) {
      failures.emplace_back(results[i].status.message());
      continue;
    }
    RUBATO_ASSIGN_OR_RETURN(const std::string output, ReadFile(results[i].output_path));
    const absl::StatusOr<HostFacts> facts = ParseHostFacts(output);
    HostNeeds own = needs;
    own.gpus = GpusNeeded(tasks, hosts_[i], needs.gpus);
    const std::vector<std::string> problems = facts.ok()
                                                  ? HostProblems(*facts, own, before, after)
                                                  : std::vector<std::string>{std::string(facts.status().message())};
    if (facts.ok()) facts_[hosts_[i]] = *facts;
    if (problems.empty()) continue;
    failures.push_back(absl::StrCat(ssh_->HostName(hosts_[i]), ": ", absl::StrJoin(problems, "; ")));
  }
  return Together(absl::StatusCode::kFailedPrecondition,
                  absl::StrCat(failures.size(), " of ", hosts_.size(), " hosts cannot be used:"), failures);
}

std::vector<int> SshJob::HostsWithData() const {
  std::set<int> hosts;
  for (const v1::DeployedTask& task : deployment_.tasks()) {
    const bool reads = task.role() == v1::TaskId::WORKER || task.role() == v1::TaskId::EVALUATOR;
    if (reads) hosts.insert(static_cast<int>(task.host()));
  }
  return {hosts.begin(), hosts.end()};
}

absl::Status SshJob::CopyArchive(const Archive& archive, const std::string& stored, HostScript script,
                                 const std::vector<int>& hosts) {
  std::vector<SshCall> calls;
  for (int host : hosts) {
    const auto facts = facts_.find(host);
    if (facts != facts_.end() && facts->second.stored.contains(stored)) continue;
    calls.push_back(Call(host, script, {{"id", archive.id}}, true));
    calls.back().input = archive.path;
  }
  return TogetherOf(ssh_->Run(calls, kCopy), absl::StatusCode::kFailedPrecondition,
                    absl::StrCat(archive.path, " could not be copied:"));
}

absl::Status SshJob::Copy(const Package& package, const Archive* data) {
  RUBATO_RETURN_IF_ERROR(CopyArchive(package.archive, StoredPackage(package.archive), HostScript::kUnpack, hosts_));
  if (data == nullptr) return absl::OkStatus();
  return CopyArchive(*data, StoredData(*data), HostScript::kUnpackData, HostsWithData());
}

absl::Status SshJob::CopyCredentials(const std::string& folder) {
  std::vector<SshCall> calls;
  for (int host : hosts_) {
    std::vector<std::string> argv = {"tar", "-cf", "-", "-C", folder, "--", "ca.crt"};
    for (const v1::DeployedTask& task : deployment_.tasks()) {
      if (static_cast<int>(task.host()) != host) continue;
      const std::string name = CredentialName(PartyOf(task.role()), task.index());
      argv.insert(argv.end(), {absl::StrCat(name, ".crt"), absl::StrCat(name, ".key")});
    }
    RUBATO_ASSIGN_OR_RETURN(const std::string archive, RunProgram(std::move(argv)));
    calls.push_back(Call(host, HostScript::kCredentials, {}, true));
    calls.back().input = JoinPath(folder, absl::StrCat("host-", host, ".tar"));
    RUBATO_RETURN_IF_ERROR(WriteSecretFile(calls.back().input, archive, /*replace=*/true));
  }
  absl::Status status = TogetherOf(ssh_->Run(calls, kAnswer), absl::StatusCode::kFailedPrecondition,
                                   "the job's credentials could not be copied:");
  for (const SshCall& call : calls) status.Update(RemoveFile(call.input));
  return status;
}

absl::Status SshJob::StartCoordinator(const std::string& config_path, const Package& package, bool resume) {
  const int host = coordinator_host();
  const v1::HostConfig& place = deployment_.hosts().hosts(host);
  SshCall call = Call(host, HostScript::kLaunch, {{"package", package.archive.id}}, true);
  call.input = config_path;
  // It is started again with the same words when it was killed, and the first time there is nothing to go on with.
  const std::string listen = absl::StrCat(AnyAddress(place), ":", deployment_.hosts().coordinator_port());
  absl::StrAppend(&call.script,
                  ShellCommand({"start", "coordinator", "coordinator", "--listen", listen, "--port_file",
                                absl::StrCat("jobs/", deployment_.job_id(), "/coordinator.address"),
                                resume ? "--resume_ended" : "--resume"}),
                  "\nawait_sessions\nawait_coordinator ", kListenSeconds, "\n");
  const SshResult result = ssh_->Run({call}, absl::Seconds(kListenSeconds) + kAnswer)[0];
  if (absl::IsCancelled(result.status)) return absl::CancelledError("stopped by a signal");
  RUBATO_RETURN_IF_ERROR(Annotate(result.status, "the coordinator could not be started"));
  RUBATO_ASSIGN_OR_RETURN(const std::string address, ReadFile(result.output_path));
  uint32_t port = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(address.substr(address.rfind(':') + 1)), &port)) {
    return absl::AbortedError(absl::StrCat(ssh_->HostName(host), ": \"", address, "\" instead of an address"));
  }
  deployment_.set_coordinator(HostAndPort(place.address(), port));
  return absl::OkStatus();
}

std::string SshJob::StartProgram(const v1::DeployedTask& task) const {
  const v1::WorkerProgram& program = deployment_.hosts().worker_program();
  WorkerPlace place = {.rank = task.index(), .size = 0, .local_rank = task.slot(), .local_size = 0};
  for (const v1::DeployedTask& other : deployment_.tasks()) {
    if (other.role() != v1::TaskId::WORKER) continue;
    ++place.size;
    if (other.host() == task.host()) ++place.local_size;
  }
  WorkerCommand command;
  command.variables.assign(program.environment().begin(), program.environment().end());
  std::vector<std::string> words = {"start_command", TaskFileName(task.role(), task.index())};
  for (std::string& variable : WorkerVariables(command, deployment_.coordinator(), place)) {
    words.push_back(std::move(variable));
  }
  words.insert(words.end(), program.command().begin(), program.command().end());
  return ShellCommand(words);
}

std::string SshJob::StartCommand(const v1::DeployedTask& task, const v1::JobConfig& config) const {
  const int host = static_cast<int>(task.host());
  const v1::HostConfig& place = deployment_.hosts().hosts(host);
  const bool is_server = task.role() == v1::TaskId::SERVER;
  if (task.role() == v1::TaskId::WORKER && deployment_.hosts().has_worker_program()) return StartProgram(task);
  std::vector<std::string> words = {"start",
                                    TaskFileName(task.role(), task.index()),
                                    is_server ? "server" : "worker",
                                    "--task_index",
                                    absl::StrCat(task.index()),
                                    "--coordinator",
                                    deployment_.coordinator()};
  if (is_server) {
    const uint32_t first = deployment_.hosts().server_port();
    const uint32_t port = first > 0 ? first + task.slot() : 0;
    words.insert(words.end(), {"--listen", absl::StrCat(AnyAddress(place), ":", port), "--advertise_host",
                               Bracketed(place.address())});
  } else {
    words.insert(words.end(), {"--role", task.role() == v1::TaskId::WORKER ? "worker" : "evaluator"});
    const auto facts = facts_.find(host);
    const uint32_t gpus = facts == facts_.end() ? 0 : facts->second.gpus;
    if (const std::optional<uint32_t> gpu = AssignedGpu(config.training(), gpus, GpuTurn(deployment_, task))) {
      words.insert(words.end(), {"--set", absl::StrCat("training.device_index=", *gpu)});
    }
  }
  return ShellCommand(words);
}

absl::Status SshJob::Start(const v1::JobConfig& config, const std::string& config_path, const Package& package,
                           bool resume) {
  RUBATO_RETURN_IF_ERROR(StartCoordinator(config_path, package, resume));
  std::vector<SshCall> calls;
  for (int host : hosts_) {
    SshCall call = Call(host, HostScript::kLaunch, {{"package", package.archive.id}}, true);
    call.input = config_path;
    for (const v1::DeployedTask& task : deployment_.tasks()) {
      if (static_cast<int>(task.host()) != host || task.role() == v1::TaskId::COORDINATOR) continue;
      absl::StrAppend(&call.script, StartCommand(task, config), "\n");
    }
    absl::StrAppend(&call.script, "await_sessions\n");
    calls.push_back(std::move(call));
  }
  return TogetherOf(ssh_->Run(calls, kAnswer), absl::StatusCode::kAborted, "tasks could not be started:");
}

absl::Status SshJob::StartAgain(const v1::TaskId& id) {
  for (const v1::DeployedTask& task : deployment_.tasks()) {
    if (task.role() != id.role() || task.index() != id.index()) continue;
    SshCall call = Call(static_cast<int>(task.host()), HostScript::kLaunch, {{"package", ""}}, true);
    absl::StrAppend(&call.script, ShellCommand({"start_again", TaskFileName(task.role(), task.index())}),
                    "\nawait_sessions\n");
    return TogetherOf(ssh_->Run({call}, kAnswer), absl::StatusCode::kUnavailable, "its host does not start it:");
  }
  return absl::InternalError(absl::StrCat(TaskName(id), " is not a task of this job"));
}

absl::Status SshJob::Renew() {
  RUBATO_RETURN_IF_ERROR(Stop());
  std::vector<SshCall> calls;
  for (int host : hosts_) {
    calls.push_back(Call(host, HostScript::kRenew, {{"journal", host == coordinator_host() ? "1" : ""}}, false));
  }
  return TogetherOf(ssh_->Run(calls, kAnswer), absl::StatusCode::kFailedPrecondition, "the job cannot go on:");
}

absl::Status SshJob::Stop() {
  std::vector<SshCall> calls;
  for (int host : hosts_)
    calls.push_back(Call(host, HostScript::kStop, {{"grace", absl::StrCat(kGraceSeconds)}}, false));
  return TogetherOf(ssh_->Run(calls, kAnswer, /*heed_signals=*/false), absl::StatusCode::kUnavailable,
                    "the job may still run on these hosts (rubato deploy ssh down ends it once they answer):");
}

absl::Status SshJob::Fetch(const std::string& directory, const std::string& part) {
  std::vector<SshCall> calls;
  const std::string wanted = part.empty() ? "run" : JoinPath("run", part);
  for (int host : hosts_) calls.push_back(Call(host, HostScript::kFetch, {{"wanted", wanted}}, false));
  std::vector<SshResult> results = ssh_->Run(calls, kCopy, /*heed_signals=*/false);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].status.ok()) continue;
    absl::StatusOr<uint64_t> bytes = FileBytes(results[i].output_path);
    if (bytes.ok() && *bytes == 0) continue;  // It never began there.
    const absl::StatusOr<std::string> unpacked =
        RunProgram({"tar", "-xzf", results[i].output_path, "--strip-components=1", "--no-same-owner", "-C", directory});
    if (!unpacked.ok()) results[i].status = Annotate(unpacked.status(), ssh_->HostName(hosts_[i]));
  }
  return TogetherOf(results, absl::StatusCode::kUnavailable, "the run directory is not whole; from these hosts:");
}

absl::Status SshJob::Remove() {
  std::vector<SshCall> calls;
  for (int host : hosts_) calls.push_back(Call(host, HostScript::kRemove, {}, false));
  return TogetherOf(ssh_->Run(calls, kAnswer, /*heed_signals=*/false), absl::StatusCode::kUnavailable,
                    "the job's folder is still on these hosts:");
}

std::string SshJob::DescribeTasks() {
  std::vector<SshCall> calls;
  for (int host : hosts_) calls.push_back(Call(host, HostScript::kState, {}, false));
  const std::vector<SshResult> results = ssh_->Run(calls, kAnswer);
  std::string text;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string output = results[i].status.ok() ? ReadFile(results[i].output_path).value_or("") : "";
    if (!results[i].status.ok()) absl::StrAppend(&text, results[i].status.message(), "\n");
    for (absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
      absl::StrAppend(&text, ssh_->HostName(hosts_[i]), ": ", line, "\n");
    }
  }
  return text.empty() ? "no task was started\n" : text;
}

absl::Status SshJob::ReadLogs(const std::vector<std::string>& names, int lines, std::string* text) {
  std::map<int, std::string> by_host;
  std::set<std::string> known;
  for (const v1::DeployedTask& task : deployment_.tasks()) {
    const std::string name = TaskFileName(task.role(), task.index());
    known.insert(name);
    const bool wanted = names.empty() || std::find(names.begin(), names.end(), name) != names.end();
    if (wanted) absl::StrAppend(&by_host[static_cast<int>(task.host())], name, " ");
  }
  for (const std::string& name : names) {
    if (known.contains(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("TASK: value \"", name, "\"; allowed: ", absl::StrJoin(known, ", ")));
  }
  std::vector<SshCall> calls;
  for (const auto& [host, tasks] : by_host) {
    calls.push_back(Call(host, HostScript::kLogs, {{"lines", absl::StrCat(lines)}, {"names", tasks}}, false));
  }
  const std::vector<SshResult> results = ssh_->Run(calls, kAnswer);
  for (const SshResult& result : results) absl::StrAppend(text, ReadFile(result.output_path).value_or(""));
  return TogetherOf(results, absl::StatusCode::kUnavailable, "logs could not be read:");
}

absl::StatusOr<Ssh::Running> SshJob::Watch(int host) {
  const auto tasks =
      std::count_if(deployment_.tasks().begin(), deployment_.tasks().end(),
                    [host](const v1::DeployedTask& task) { return static_cast<int>(task.host()) == host; });
  return ssh_->Start(Call(host, HostScript::kWatch, {{"tasks", absl::StrCat(tasks)}}, true));
}

}  // namespace rubato
