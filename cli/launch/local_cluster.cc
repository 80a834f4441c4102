#include "cli/launch/local_cluster.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/launch/card_count.h"
#include "cli/launch/card_turns.h"
#include "common/config/fingerprint.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

constexpr int kLogLines = 15;
constexpr int kEvaluatorRestartsMax = 3;
// Exit status of a task that refuses its config or flags.
constexpr int kUsageExit = 2;
constexpr absl::Duration kCallDeadline = absl::Seconds(1);

}  // namespace

absl::Status LocalCluster::Run() {
  started_ = clock_->Now();
  absl::Status status = Start();
  if (status.ok()) {
    last_answer_ = clock_->Now();
    Supervise();
  } else if (stop_reason_.ok()) {
    stop_reason_ = status;
  }
  EndTasks();
  return Result();
}

absl::Status LocalCluster::Start() {
  const std::string& directory = options_.config.run_directory();
  RUBATO_RETURN_IF_ERROR(MakeDirectories(JoinPath(directory, "logs")));
  std::string config_path = JoinPath(directory, "job.textproto");
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(config_path, ConfigText(options_.config)));
  std::string address_file = JoinPath(directory, "coordinator.address");
  RUBATO_RETURN_IF_ERROR(RemoveFile(address_file));
  RUBATO_ASSIGN_OR_RETURN(const uint32_t cards, CardsToShareOut());
  coordinator_.command = CoordinatorCommand(options_.binaries, config_path, address_file);
  if (!options_.metrics_listen.empty()) {
    coordinator_.command.argv.insert(coordinator_.command.argv.end(), {"--metrics_listen", options_.metrics_listen});
  }
  RUBATO_RETURN_IF_ERROR(StartTask(&coordinator_));
  RUBATO_ASSIGN_OR_RETURN(std::string address, WaitForAddress());
  for (TaskCommand& command :
       TaskCommands(options_.binaries, options_.config, config_path, address, options_.slowed, cards)) {
    tasks_.emplace_back();
    tasks_.back().command = std::move(command);
    if (!options_.metrics_listen.empty()) {
      std::vector<std::string>& argv = tasks_.back().command.argv;
      argv.insert(argv.end(), {"--metrics_listen", "127.0.0.1:0"});
    }
    RUBATO_RETURN_IF_ERROR(StartTask(&tasks_.back()));
  }
  client_ = std::make_unique<CoordinatorClient>(address);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> LocalCluster::CardsToShareOut() {
  const v1::TrainingConfig& training = options_.config.training();
  if (!TakesTurns(training)) return 0;
  const absl::StatusOr<uint32_t> cards =
      CountCards(options_.binaries.worker, JoinPath(options_.config.run_directory(), "logs/cards.log"),
                 absl::Seconds(options_.config.cluster().start_timeout_seconds()), *clock_, signals_);
  if (absl::IsCancelled(cards.status())) return cards.status();
  if (!cards.ok()) {
    Event(absl::StrCat(cards.status().message(), "; every task takes card 0"));
    return 0;
  }
  // Where there is none, a worker says better why.
  const std::string problem = *cards == 0 ? "" : CardProblem(*cards, training.cards());
  if (training.device() == v1::TrainingConfig::CUDA && !problem.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("this machine cannot be used: ", problem));
  }
  return *cards;
}

absl::StatusOr<std::string> LocalCluster::WaitForAddress() {
  std::string path = JoinPath(options_.config.run_directory(), "coordinator.address");
  absl::Duration patience = absl::Seconds(options_.config.cluster().start_timeout_seconds());
  absl::Time deadline = clock_->Now() + patience;
  std::string previous;
  while (clock_->Now() < deadline) {
    // Read twice alike: it is not being written any more.
    absl::StatusOr<std::string> text = ReadFile(path);
    std::string address = text.ok() ? text->substr(0, text->find('\n')) : "";
    if (absl::StrContains(address, ':') && address == previous) return address;
    previous = address;
    WaitForEvent(absl::Milliseconds(10));
    if (signals_->Take()) return absl::CancelledError("stopped by a signal");
    coordinator_result_ = coordinator_.process->Poll();
    if (!coordinator_result_.has_value()) continue;
    bool refused = coordinator_result_->code == kUsageExit;
    return absl::Status(
        refused ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kAborted,
        absl::StrCat("the coordinator ended with ", coordinator_result_->Describe(), LogTail(coordinator_.command)));
  }
  return absl::DeadlineExceededError(absl::StrCat("the coordinator did not listen within ",
                                                  absl::FormatDuration(patience), LogTail(coordinator_.command)));
}

absl::Status LocalCluster::StartTask(Task* task) {
  RUBATO_ASSIGN_OR_RETURN(task->process, ChildProcess::Start(task->command.argv, LogPath(task->command)));
  task->ended = false;
  return absl::OkStatus();
}

void LocalCluster::Supervise() {
  while (true) {
    WaitForEvent(options_.poll_interval);
    absl::Time now = clock_->Now();
    if (signals_->Take()) {
      // Somebody who asks again does not want to wait.
      if (stage_ == Stage::kRunning) {
        BeginStop(absl::CancelledError("stopped by a signal"));
      } else {
        Escalate();
      }
    }
    coordinator_result_ = coordinator_.process->Poll();
    if (coordinator_result_.has_value()) return;
    ReapTasks();
    if (stage_ == Stage::kKilled) return;
    if (stage_ != Stage::kRunning) {
      if (now - stage_began_ >= options_.patience) Escalate();
      continue;
    }
    if (now - started_ >= options_.time_limit) {
      BeginStop(absl::DeadlineExceededError(
          absl::StrCat("the job did not end within ", absl::FormatDuration(options_.time_limit))));
    } else if (now >= next_poll_) {
      next_poll_ = now + options_.poll_interval;
      PollStatus();
    }
  }
}

void LocalCluster::WaitForEvent(absl::Duration timeout) {
  std::vector<struct pollfd> events = {{signals_->descriptor(), POLLIN, 0}};
  if (coordinator_.process != nullptr) events.push_back({coordinator_.process->descriptor(), POLLIN, 0});
  for (const Task& task : tasks_) {
    if (!task.ended && task.process != nullptr) events.push_back({task.process->descriptor(), POLLIN, 0});
  }
  int milliseconds = static_cast<int>(std::max<int64_t>(1, absl::ToInt64Milliseconds(timeout)));
  poll(events.data(), static_cast<nfds_t>(events.size()), milliseconds);
}

void LocalCluster::ReapTasks() {
  for (Task& task : tasks_) {
    if (task.ended || task.process == nullptr) continue;
    std::optional<ExitResult> result = task.process->Poll();
    if (!result.has_value()) continue;
    task.ended = true;
    if (!result->ok() && stage_ == Stage::kRunning) OnTaskEnded(&task, *result);
  }
}

void LocalCluster::OnTaskEnded(Task* task, const ExitResult& result) {
  std::string name = TaskName(task->command.role, task->command.index);
  std::string death = absl::StrCat(name, " ended with ", result.Describe(), LogTail(task->command));
  Event(death);
  PollStatus();  // Whether it ended with the job, and why that did.
  const v1::JobStatus::Phase phase = last_status_.phase();
  const bool over = stage_ != Stage::kRunning || phase == v1::JobStatus::DONE || phase == v1::JobStatus::FAILED;
  const bool is_evaluator = task->command.role == v1::TaskId::EVALUATOR;
  const bool refused = result.code == kUsageExit;
  if (is_evaluator && !over && !refused && task->restarts < kEvaluatorRestartsMax) {
    ++task->restarts;
    absl::Status status = StartTask(task);
    Event(status.ok() ? absl::StrCat(name, " is started again (", task->restarts, " of at most ", kEvaluatorRestartsMax,
                                     " times)")
                      : absl::StrCat(name, " could not be started again: ", status.message()));
    if (status.ok()) return;
    task->ended = true;
  }
  if (first_death_.empty()) {
    first_death_ = death;
    config_refused_ = refused;
  }
  if (over || (is_evaluator ? !refused : phase != v1::JobStatus::STARTING)) return;
  // Nobody would take its place: the others would wait for cluster.start_timeout_seconds, and a job that is to be
  // evaluated would end without an accuracy.
  absl::StatusCode code = config_refused_ ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kAborted;
  std::string reason = absl::StrCat(name, is_evaluator ? " cannot evaluate" : " ended before the job could begin");
  BeginStop(absl::Status(code, reason));
  stop_reason_ = absl::Status(code, absl::StrCat(reason, "\n", first_death_));
}

void LocalCluster::PollStatus() {
  absl::StatusOr<v1::JobStatus> status = client_->GetStatus(kCallDeadline);
  if (status.ok()) {
    last_answer_ = clock_->Now();
    last_status_ = *std::move(status);
    if (options_.on_status != nullptr) options_.on_status(last_status_);
    return;
  }
  absl::Duration patience = absl::Seconds(options_.config.cluster().start_timeout_seconds());
  if (clock_->Now() - last_answer_ < patience) return;
  BeginStop(
      absl::DeadlineExceededError(absl::StrCat("the coordinator has not answered for ", absl::FormatDuration(patience),
                                               ": ", status.status().message(), LogTail(coordinator_.command))));
}

void LocalCluster::BeginStop(absl::Status why) {
  stop_reason_ = std::move(why);
  stage_ = Stage::kAsked;
  stage_began_ = clock_->Now();
  Event(absl::StrCat("stopping the job: ", stop_reason_.message()));
  absl::Status status = client_->StopJob(std::string(stop_reason_.message()), kCallDeadline);
  if (!status.ok()) Escalate();
}

void LocalCluster::Escalate() {
  stage_began_ = clock_->Now();
  if (stage_ == Stage::kTerminated) {
    stage_ = Stage::kKilled;
    SignalAll(SIGKILL);
  } else {
    stage_ = Stage::kTerminated;
    SignalAll(SIGTERM);
  }
}

void LocalCluster::EndTasks() {
  if (stage_ == Stage::kRunning) stage_ = Stage::kAsked;
  stage_began_ = clock_->Now();
  // Before the job has begun there may be tasks that the coordinator has not heard of and cannot tell to end.
  if (client_ == nullptr || last_status_.phase() == v1::JobStatus::STARTING) Escalate();
  while (AnyTaskRuns()) {
    if (stage_ == Stage::kKilled) break;
    WaitForEvent(options_.poll_interval);
    if (signals_->Take() || clock_->Now() - stage_began_ >= options_.patience) Escalate();
    ReapTasks();
    if (coordinator_.process != nullptr) coordinator_result_ = coordinator_.process->Poll();
  }
  // Destroying a process object kills the process and waits for it.
  for (Task& task : tasks_) task.process.reset();
  if (coordinator_.process != nullptr) coordinator_result_ = coordinator_.process->Poll();
  coordinator_.process.reset();
}

bool LocalCluster::AnyTaskRuns() const {
  bool coordinator_runs = coordinator_.process != nullptr && !coordinator_result_.has_value();
  return coordinator_runs || std::any_of(tasks_.begin(), tasks_.end(),
                                         [](const Task& task) { return !task.ended && task.process != nullptr; });
}

void LocalCluster::SignalAll(int signal) {
  for (Task& task : tasks_) {
    if (!task.ended && task.process != nullptr) task.process->Signal(signal);
  }
  if (coordinator_.process != nullptr) coordinator_.process->Signal(signal);
}

absl::Status LocalCluster::Result() const {
  if (!stop_reason_.ok()) return stop_reason_;
  if (coordinator_result_.has_value() && coordinator_result_->ok()) return absl::OkStatus();
  std::string error = last_status_.error();
  if (error.empty()) {
    error = coordinator_result_.has_value()
                ? absl::StrCat("the coordinator ended with ", coordinator_result_->Describe())
                : "the coordinator is gone";
  }
  absl::StatusCode code = config_refused_ ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kAborted;
  std::string words = first_death_.empty() ? LogTail(coordinator_.command) : absl::StrCat("\n", first_death_);
  return absl::Status(code, absl::StrCat(error, words));
}

std::string LocalCluster::LogPath(const TaskCommand& command) const {
  return JoinPath(JoinPath(options_.config.run_directory(), "logs"), command.LogName());
}

std::string LocalCluster::LogTail(const TaskCommand& command) const {
  std::string lines = LastLines(LogPath(command), kLogLines);
  std::string indented;
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&indented, "\n    ", line);
  }
  if (indented.empty()) return absl::StrCat("; ", LogPath(command), " is empty");
  return absl::StrCat("; the end of ", LogPath(command), ":", indented);
}

void LocalCluster::Event(absl::string_view text) {
  if (options_.on_event != nullptr) options_.on_event(text);
}

}  // namespace rubato
