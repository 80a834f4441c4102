#include "cli/deploy/ssh_follower.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/deploy/task_assignment.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

constexpr absl::Duration kCallDeadline = absl::Seconds(2);
constexpr absl::Duration kRetry = absl::Seconds(2);
constexpr int kLogLines = 15;
constexpr char kCoordinator[] = "coordinator";

}  // namespace

absl::Status SshFollower::Run() {
  started_ = last_answer_ = clock_->Now();
  for (int host : job_->hosts()) watchers_.push_back({.host = host});
  while (!Over(clock_->Now())) {
    Connect();
    Wait();
    if (signals_->Take()) {
      // Somebody who asks again does not want to wait.
      give_up_ = !stop_reason_.ok();
      if (!give_up_) BeginStop(absl::CancelledError("stopped by a signal"));
    }
    PollWatchers();
    if (!coordinator_exit_.has_value()) PollStatus();
    if (stop_reason_.ok() && !coordinator_exit_.has_value() && clock_->Now() - started_ >= options_.time_limit) {
      BeginStop(absl::DeadlineExceededError(
          absl::StrCat("the job did not end within ", absl::FormatDuration(options_.time_limit))));
    }
  }
  return Result();
}

bool SshFollower::Over(absl::Time now) const {
  if (give_up_) return true;
  if (!stop_reason_.ok() && now - stop_began_ >= options_.patience) return true;
  if (!coordinator_exit_.has_value()) return false;
  const bool all_done = std::all_of(watchers_.begin(), watchers_.end(),
                                    [](const Watcher& watcher) { return watcher.done || watcher.lost; });
  return all_done || now - coordinator_ended_ >= options_.patience;
}

void SshFollower::Wait() {
  std::vector<struct pollfd> events = {{signals_->descriptor(), POLLIN, 0}};
  for (const Watcher& watcher : watchers_) {
    if (watcher.running.has_value()) events.push_back({watcher.running->process->descriptor(), POLLIN, 0});
  }
  poll(events.data(), static_cast<nfds_t>(events.size()),
       static_cast<int>(absl::ToInt64Milliseconds(options_.poll_interval)));
}

void SshFollower::Connect() {
  const absl::Time now = clock_->Now();
  if (tunnel_ != nullptr && tunnel_->HasEnded()) {
    tunnel_.reset();
    tunnel_retry_at_ = now + kRetry;
  }
  if (tunnel_ == nullptr && now >= tunnel_retry_at_) {
    tunnel_retry_at_ = now + kRetry;
    absl::StatusOr<std::unique_ptr<CoordinatorTunnel>> tunnel = CoordinatorTunnel::Open(job_);
    if (tunnel.ok()) tunnel_ = *std::move(tunnel);
  }
}

void SshFollower::PollWatchers() {
  for (Watcher& watcher : watchers_) {
    if (watcher.done) continue;
    const absl::Time now = clock_->Now();
    if (!watcher.running.has_value()) {
      if (now < watcher.retry_at) continue;
      absl::StatusOr<Ssh::Running> running = job_->Watch(watcher.host);
      watcher.retry_at = now + kRetry;
      if (!running.ok()) continue;
      watcher.running = *std::move(running);
      watcher.read = 0;
    }
    PollWatcher(&watcher);
  }
}

void SshFollower::PollWatcher(Watcher* watcher) {
  // Before its output is read, so that nothing of it is missed.
  const std::optional<ExitResult> result = watcher->running->process->Poll();
  const std::string output = ReadFile(watcher->running->output_path).value_or("");
  const size_t end = output.rfind('\n') == std::string::npos ? 0 : output.rfind('\n') + 1;
  const std::string lines = end > watcher->read ? output.substr(watcher->read, end - watcher->read) : "";
  watcher->read = std::max(watcher->read, end);
  const std::string& host = job_->ssh()->HostName(watcher->host);
  if (!lines.empty() && std::exchange(watcher->lost, false)) Event(absl::StrCat(host, " is reached again"));
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() == 3 && words[0] == "exit") OnTaskEnded(words[1], words[2]);
  }
  if (!result.has_value()) return;
  const absl::Status outcome = job_->ssh()->Outcome(watcher->host, *result, watcher->running->errors_path);
  watcher->running.reset();
  watcher->retry_at = clock_->Now() + kRetry;
  if (outcome.ok()) {
    watcher->done = true;
  } else if (!std::exchange(watcher->lost, true)) {
    Event(absl::StrCat("lost contact with ", outcome.message()));
  }
}

void SshFollower::OnTaskEnded(const std::string& name, const std::string& exit_status) {
  if (!ended_.insert(name).second) return;
  if (name == kCoordinator) {
    PollStatus();  // Once more, before what leads there is gone.
    coordinator_exit_ = exit_status;
    coordinator_ended_ = clock_->Now();
    return;
  }
  if (exit_status == "0" || !stop_reason_.ok()) return;
  PollStatus();  // Whether it ended with the job, and why that did.
  const v1::JobStatus::Phase phase = last_status_.phase();
  if (phase == v1::JobStatus::DONE || phase == v1::JobStatus::FAILED) return;
  const std::string death = absl::StrCat(name, " ended with exit status ", exit_status, LogTail(name));
  Event(death);
  if (first_ended_.empty()) {
    first_ended_ = name;
    first_death_ = death;
  }
  CheckStart();
}

void SshFollower::CheckStart() {
  const v1::JobStatus::Phase phase = last_status_.phase();
  if (phase > v1::JobStatus::STARTING) first_ended_.clear();  // The job has begun; members may come and go.
  if (first_ended_.empty() || phase != v1::JobStatus::STARTING || !stop_reason_.ok()) return;
  BeginStop(absl::AbortedError(absl::StrCat(first_ended_, " ended before the job could begin")));
  stop_reason_ = absl::AbortedError(absl::StrCat(stop_reason_.message(), "\n", first_death_));
}

void SshFollower::PollStatus() {
  if (tunnel_ == nullptr) return;
  absl::StatusOr<v1::JobStatus> status = tunnel_->client()->GetStatus(kCallDeadline);
  const absl::Time now = clock_->Now();
  if (status.ok()) {
    last_answer_ = now;
    last_status_ = *std::move(status);
    ReportTasks(last_status_);
    if (options_.on_status != nullptr && stop_reason_.ok()) options_.on_status(last_status_);
    CheckStart();
    return;
  }
  if (!stop_reason_.ok() || coordinator_exit_.has_value() || now - last_answer_ < options_.contact_timeout) return;
  BeginStop(absl::DeadlineExceededError(
      absl::StrCat("the coordinator on ", job_->ssh()->HostName(job_->coordinator_host()), " could not be reached for ",
                   absl::FormatDuration(options_.contact_timeout), ": ", status.status().message())));
}

void SshFollower::ReportTasks(const v1::JobStatus& status) {
  for (const v1::TaskStatus& task : status.tasks()) {
    if (task.state() != v1::TaskStatus::EVICTED) continue;
    const std::string name = TaskName(task.task());
    if (!evicted_.insert(absl::StrCat(name, " ", task.task().incarnation())).second) continue;
    Event(
        absl::StrCat(name, " on ", job_->HostOf(task.task().role(), task.task().index()), " is lost: ", task.reason()));
  }
}

void SshFollower::BeginStop(absl::Status why) {
  stop_reason_ = std::move(why);
  stop_began_ = clock_->Now();
  Event(absl::StrCat("stopping the job: ", stop_reason_.message()));
  const absl::Status asked = tunnel_ == nullptr
                                 ? absl::UnavailableError("")
                                 : tunnel_->client()->StopJob(std::string(stop_reason_.message()), kCallDeadline);
  // Then it is ended with all the others, by SshJob::Stop.
  if (!asked.ok()) give_up_ = true;
}

absl::Status SshFollower::Result() const {
  if (!stop_reason_.ok()) return stop_reason_;
  if (coordinator_exit_ == "0") return absl::OkStatus();
  if (!last_status_.error().empty()) return absl::AbortedError(last_status_.error());
  return absl::AbortedError(
      absl::StrCat("the coordinator ended with exit status ", *coordinator_exit_, LogTail(kCoordinator)));
}

std::string SshFollower::LogTail(const std::string& task) const {
  std::string text;
  const absl::Status read = job_->ReadLogs({task}, kLogLines, &text);
  if (!read.ok()) return absl::StrCat("; its log could not be read: ", read.message());
  absl::StripTrailingAsciiWhitespace(&text);
  return absl::StrCat("; the end of its log:\n    ", absl::StrReplaceAll(text, {{"\n", "\n    "}}));
}

void SshFollower::Event(absl::string_view text) {
  if (options_.on_event != nullptr) options_.on_event(text);
}

}  // namespace rubato
