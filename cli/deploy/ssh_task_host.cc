#include "cli/deploy/ssh_task_host.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/deploy/deployment_file.h"
#include "cli/launch/job_credentials.h"
#include "cli/launch/run_security.h"
#include "cli/launch/task_commands.h"
#include "common/config/fingerprint.h"
#include "common/security/open_security.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(2);
// As ssh's own ConnectTimeout.
constexpr absl::Duration kConnectTimeout = absl::Seconds(10);
constexpr int kLogLines = 15;
// What a shell adds to the number of the signal that has ended a program.
constexpr int kSignalExit = 128;

}  // namespace

SshTaskHost::SshTaskHost(Options options, SshJob* job, const Clock* clock)
    : options_(std::move(options)), job_(job), clock_(clock), begun_(!options_.launch.has_value()) {
  for (int host : job_->hosts()) watchers_.push_back({.host = host});
}

absl::Status SshTaskHost::Start() {
  if (!options_.launch.has_value()) return absl::OkStatus();
  const Launch& launch = *options_.launch;
  const Archive* data = launch.data.has_value() ? &*launch.data : nullptr;
  if (options_.resume) {
    Step("Ending what is left of the job");
    RUBATO_RETURN_IF_ERROR(job_->Renew());
  }
  Step(absl::StrCat("Checking ", job_->hosts().size(), " hosts"));
  RUBATO_RETURN_IF_ERROR(job_->Check(launch.needs, launch.package, data));
  RUBATO_RETURN_IF_ERROR(SaveDeployment(job_->deployment(), options_.run_directory));
  begun_ = true;
  Step("Copying what they do not have");
  RUBATO_RETURN_IF_ERROR(job_->Copy(launch.package, data));
  RUBATO_RETURN_IF_ERROR(CopyCredentials(launch.config));
  Step(absl::StrCat("Starting job ", job_->deployment().job_id()));
  v1::JobConfig on_hosts = launch.config;
  on_hosts.set_run_directory(job_->run_directory());
  const std::string config_path = JoinPath(options_.run_directory, "job.textproto");
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(config_path, ConfigText(on_hosts)));
  RUBATO_RETURN_IF_ERROR(job_->Start(on_hosts, config_path, launch.package, options_.resume));
  return SaveDeployment(job_->deployment(), options_.run_directory);
}

absl::Status SshTaskHost::CopyCredentials(v1::JobConfig config) {
  if (config.security().insecure() || !config.security().credentials().empty()) return absl::OkStatus();
  config.set_run_directory(options_.run_directory);
  RUBATO_RETURN_IF_ERROR(MakeJobCredentials(config, clock_->Now()));
  return job_->CopyCredentials(CredentialsFolder(config));
}

absl::Status SshTaskHost::StartAgain(const v1::TaskId& task) {
  RUBATO_RETURN_IF_ERROR(job_->StartAgain(task));
  for (const v1::DeployedTask& deployed : job_->deployment().tasks()) {
    if (deployed.role() != task.role() || deployed.index() != task.index()) continue;
    for (Watcher& watcher : watchers_) {
      if (watcher.host != static_cast<int>(deployed.host())) continue;
      // It may have been the host's last one, and then what watches the host is ending. Another one says again what has
      // not been read yet.
      watcher.running.reset();
      watcher.retry_at = absl::InfinitePast();
      watcher.done = false;
    }
  }
  return absl::OkStatus();
}

void SshTaskHost::AwaitEvent(int descriptor, absl::Duration timeout) {
  std::vector<struct pollfd> events = {{descriptor, POLLIN, 0}};
  for (const Watcher& watcher : watchers_) {
    if (watcher.running.has_value()) events.push_back({watcher.running->process->descriptor(), POLLIN, 0});
  }
  const int64_t milliseconds = std::max<int64_t>(1, absl::ToInt64Milliseconds(timeout));
  poll(events.data(), static_cast<nfds_t>(events.size()), static_cast<int>(milliseconds));
}

TaskHost::News SshTaskHost::Watch() {
  News news;
  if (!begun_ || stopped_.has_value()) return news;
  Connect();
  for (Watcher& watcher : watchers_) {
    if (watcher.done) continue;
    if (!watcher.running.has_value()) {
      const absl::Time now = clock_->Now();
      if (now < watcher.retry_at) continue;
      watcher.retry_at = now + kRetry;
      absl::StatusOr<Ssh::Running> running = job_->Watch(watcher.host);
      if (!running.ok()) continue;
      watcher.running = *std::move(running);
      watcher.read = 0;
    }
    Poll(&watcher, &news);
  }
  return news;
}

void SshTaskHost::Connect() {
  const absl::Time now = clock_->Now();
  if (tunnel_ != nullptr && tunnel_->HasEnded()) {
    tunnel_.reset();
    tunnel_retry_at_ = now + kRetry;
  }
  if (tunnel_ == nullptr && now >= tunnel_retry_at_) {
    tunnel_retry_at_ = now + kRetry;
    absl::StatusOr<std::shared_ptr<const TaskSecurity>> security = SecurityOfRun(options_.run_directory, now);
    if (!security.ok()) return;
    absl::StatusOr<std::unique_ptr<CoordinatorTunnel>> tunnel = CoordinatorTunnel::Open(job_, *std::move(security));
    if (tunnel.ok()) tunnel_ = *std::move(tunnel);
  }
}

void SshTaskHost::Poll(Watcher* watcher, News* news) {
  // Before its output is read, so that nothing of it is missed.
  const std::optional<ExitResult> result = watcher->running->process->Poll();
  const std::string output = ReadFile(watcher->running->output_path).value_or("");
  const size_t end = output.rfind('\n') == std::string::npos ? 0 : output.rfind('\n') + 1;
  const std::string lines = end > watcher->read ? output.substr(watcher->read, end - watcher->read) : "";
  watcher->read = std::max(watcher->read, end);
  if (!lines.empty() && std::exchange(watcher->lost, false)) {
    news->notes.push_back(absl::StrCat(job_->ssh()->HostName(watcher->host), " is reached again"));
  }
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    if (std::optional<std::string> note = ParseStart(line, watcher)) news->notes.push_back(*std::move(note));
    if (const std::optional<TaskEnd> seen = ParseEnd(line)) news->ended.push_back(*seen);
  }
  if (!result.has_value()) return;
  const absl::Status outcome = job_->ssh()->Outcome(watcher->host, *result, watcher->running->errors_path);
  watcher->running.reset();
  watcher->retry_at = clock_->Now() + kRetry;
  if (outcome.ok()) {
    watcher->done = true;
  } else if (!std::exchange(watcher->lost, true)) {
    news->notes.push_back(absl::StrCat("lost contact with ", outcome.message()));
  }
}

std::optional<v1::TaskId> SshTaskHost::TaskOf(const std::string& name) const {
  for (const v1::DeployedTask& task : job_->deployment().tasks()) {
    if (TaskFileName(task.role(), task.index()) != name) continue;
    v1::TaskId id;
    id.set_role(task.role());
    id.set_index(task.index());
    return id;
  }
  return std::nullopt;
}

std::optional<TaskHost::TaskEnd> SshTaskHost::ParseEnd(absl::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  int status = 0;
  const bool has_ended = words.size() == 4 && words[0] == "exit" && absl::SimpleAtoi(words[2], &status);
  const bool is_gone = words.size() == 3 && words[0] == "gone";
  const std::optional<v1::TaskId> task = has_ended || is_gone ? TaskOf(words[1]) : std::nullopt;
  if (!task.has_value()) return std::nullopt;
  // A watcher that has lost its host says all again.
  std::string session = absl::StrCat(words[1], " ", words.back());
  if (std::find(ended_.begin(), ended_.end(), session) != ended_.end()) return std::nullopt;
  ended_.push_back(std::move(session));
  TaskEnd end = {.task = *task};
  if (is_gone) {
    end.result.signal = SIGKILL;
  } else if (status > kSignalExit) {
    end.result.signal = status - kSignalExit;
    end.for_good = true;
  } else {
    end.result.code = status;
  }
  return end;
}

std::optional<std::string> SshTaskHost::ParseStart(absl::string_view line, Watcher* watcher) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  int number = 0, status = 0;
  if (words.size() != 4 || words[0] != "again" || !absl::SimpleAtoi(words[1], &number) ||
      !absl::SimpleAtoi(words[3], &status) || number <= watcher->told) {
    return std::nullopt;
  }
  watcher->told = number;
  const std::optional<v1::TaskId> task = TaskOf(words[2]);
  if (!task.has_value()) return std::nullopt;
  return absl::StrCat(Describe(*task), " was killed by signal ", status - kSignalExit, "; it is started again");
}

bool SshTaskHost::AnyLeft() const {
  if (!begun_ || stopped_.has_value()) return false;
  return std::any_of(watchers_.begin(), watchers_.end(),
                     [](const Watcher& watcher) { return !watcher.done && !watcher.lost; });
}

absl::StatusOr<v1::JobStatus> SshTaskHost::GetStatus(absl::Duration timeout) {
  if (tunnel_ == nullptr) return absl::UnavailableError("there is no connection to it through ssh");
  return tunnel_->client()->GetStatus(timeout);
}

absl::Status SshTaskHost::AskToStop(const std::string& reason, absl::Duration timeout) {
  // Just after the start it is still being opened, and what is not asked is ended without its weights.
  Connect();
  if (tunnel_ == nullptr) return absl::UnavailableError("there is no connection to it through ssh");
  RUBATO_RETURN_IF_ERROR(tunnel_->AwaitStatus(kConnectTimeout, clock_).status());
  return tunnel_->client()->StopJob(reason, timeout);
}

void SshTaskHost::Terminate() {
  if (begun_ && !stopped_.has_value()) stopped_ = job_->Stop();
}

void SshTaskHost::Kill() { Terminate(); }

absl::Status SshTaskHost::Finish() {
  if (!begun_) return absl::OkStatus();
  Terminate();
  std::vector<std::string> problems;
  for (const absl::Status& status : {*stopped_, job_->Fetch(options_.run_directory)}) {
    if (!status.ok()) problems.emplace_back(status.message());
  }
  return problems.empty() ? absl::OkStatus() : absl::UnavailableError(absl::StrJoin(problems, "\n"));
}

std::string SshTaskHost::Describe(const v1::TaskId& task) const {
  const std::string name = task.role() == v1::TaskId::COORDINATOR ? "the coordinator" : TaskName(task);
  return absl::StrCat(name, " on ", job_->HostOf(task.role(), task.index()));
}

std::string SshTaskHost::LogTail(const v1::TaskId& task) {
  std::string text;
  const absl::Status read = job_->ReadLogs({TaskFileName(task.role(), task.index())}, kLogLines, &text);
  if (!read.ok()) return absl::StrCat("; its log could not be read: ", read.message());
  absl::StripTrailingAsciiWhitespace(&text);
  return absl::StrCat("; the end of its log:\n    ", absl::StrReplaceAll(text, {{"\n", "\n    "}}));
}

void SshTaskHost::Step(absl::string_view text) const {
  if (options_.on_step != nullptr) options_.on_step(text);
}

}  // namespace rubato
