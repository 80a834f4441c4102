#include "cli/launch/job_supervisor.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/proto_enum.h"

namespace rubato {
namespace {

// Exit status of a task that refuses its config or flags.
constexpr int kUsageExit = 2;
constexpr absl::Duration kCallTimeout = absl::Seconds(2);

using TaskEnd = TaskHost::TaskEnd;

std::pair<int, uint32_t> Key(const v1::TaskId& task) { return {task.role(), task.index()}; }

bool WasKilled(const TaskEnd& end) { return end.result.signal != 0; }
bool WasRefused(const TaskEnd& end) { return end.result.code == kUsageExit; }
// Neither is what becomes of a task when its job has ended.
bool IsCause(const TaskEnd& end) { return WasKilled(end) || WasRefused(end); }
bool IsCoordinator(const TaskEnd& end) { return end.task.role() == v1::TaskId::COORDINATOR; }

v1::TaskId Coordinator() {
  v1::TaskId task;
  task.set_role(v1::TaskId::COORDINATOR);
  return task;
}

// Ends that are seen at once: causes first; with the coordinator's the job is over, and what follows says nothing more.
int OrderOfBlame(const TaskEnd& end) {
  if (IsCoordinator(end)) return 1;
  return IsCause(end) ? 0 : 2;
}

bool HasEnded(const v1::JobStatus& status) {
  return status.phase() == v1::JobStatus::DONE || status.phase() == v1::JobStatus::FAILED;
}

absl::StatusCode CodeOf(const TaskEnd& end) {
  return WasRefused(end) ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kAborted;
}

}  // namespace

void JobSupervisor::Run(const absl::Status& started) {
  started_ = last_answer_ = clock_->Now();
  if (!started.ok()) {
    stop_reason_ = started;
    Escalate();
  }
  while (stage_ == Stage::kRunning || (stage_ != Stage::kKilled && host_->AnyLeft())) {
    host_->AwaitEvent(signals_->descriptor(), options_.poll_interval);
    if (signals_->Take()) OnInterrupt();
    OnNews(host_->Watch());
    OnTime();
    StartWhatIsDue();
  }
}

void JobSupervisor::OnInterrupt() {
  // Somebody who asks again does not want to wait.
  if (stage_ == Stage::kRunning) return BeginStop(absl::CancelledError(signals_->reason()));
  if (AwaitsClients())
    stop_reason_ = absl::CancelledError("the job is done; stopped by a signal before its workers were");
  Escalate();
}

void JobSupervisor::OnNews(TaskHost::News news) {
  if (options_.on_output != nullptr) {
    for (const std::string& line : news.output) options_.on_output(line);
  }
  for (const std::string& note : news.notes) Event(note);
  std::stable_sort(news.ended.begin(), news.ended.end(),
                   [](const TaskEnd& a, const TaskEnd& b) { return OrderOfBlame(a) < OrderOfBlame(b); });
  for (const TaskEnd& end : news.ended) {
    if (IsClient(end)) clients_left_.erase(end.task.index());
    if (IsCoordinator(end)) {
      OnCoordinatorEnded(end);
    } else if (!end.result.ok() || IsClient(end)) {
      OnTaskEnded(end);
    }
  }
}

bool JobSupervisor::IsClient(const TaskEnd& end) const {
  return options_.clients > 0 && end.task.role() == v1::TaskId::WORKER;
}

bool JobSupervisor::AwaitsClients() const {
  return stage_ == Stage::kEnding && stop_reason_.ok() && coordinator_end_.has_value() && coordinator_end_->ok() &&
         !clients_left_.empty();
}

bool JobSupervisor::TellsMore(const TaskEnd& end) const {
  if (!IsClient(end)) return IsCause(end);
  if (end.result.ok()) return false;
  return IsDone() || WasKilled(end) || absl::StrContains(last_status_.error(), host_->Describe(end.task));
}

bool JobSupervisor::IsDone() const {
  return last_status_.phase() == v1::JobStatus::DONE || (coordinator_end_.has_value() && coordinator_end_->ok());
}

void JobSupervisor::OnTaskEnded(const TaskEnd& end) {
  // What the launcher has ended says nothing.
  if (!stop_reason_.ok() || stage_ > Stage::kEnding) return;
  if (stage_ != Stage::kRunning) {
    if (TellsMore(end)) Report(end);
    return;
  }
  undecided_.push_back(end);
  PollStatus();
}

void JobSupervisor::OnCoordinatorEnded(const TaskEnd& end) {
  if (stage_ == Stage::kRunning && WasKilled(end) && !HasEnded(last_status_)) return StartAgainOrGiveUp(end);
  coordinator_end_ = end.result;
  ReportUndecided(/*all=*/false);
  if (stage_ > Stage::kEnding) return;
  Enter(Stage::kEnding);
  // Before the job has begun there may be tasks that the coordinator has not heard of and cannot tell to end.
  if (last_status_.phase() == v1::JobStatus::STARTING && !AwaitsClients()) Escalate();
}

void JobSupervisor::OnTime() {
  const absl::Time now = clock_->Now();
  const bool is_late = now - started_ >= options_.time_limit;
  if (stage_ != Stage::kRunning) {
    // Their work is no part of what has to end soon.
    if (AwaitsClients() && !is_late) stage_began_ = now;
    if (stage_ != Stage::kKilled && now - stage_began_ >= options_.grace) Escalate();
  } else if (is_late) {
    BeginStop(absl::DeadlineExceededError(
        absl::StrCat("the job did not end within ", absl::FormatDuration(options_.time_limit))));
  } else if (now >= next_poll_) {
    next_poll_ = now + options_.poll_interval;
    PollStatus();
  }
}

void JobSupervisor::PollStatus() {
  // It is silent because it is not there.
  if (IsToBeStarted(v1::TaskId::COORDINATOR)) return;
  absl::StatusOr<v1::JobStatus> status = host_->GetStatus(kCallTimeout);
  if (status.ok()) {
    last_answer_ = clock_->Now();
    last_status_ = *std::move(status);
    ForgetSurvivedDeaths();
    ReportEvictions();
    ReportRollback();
    if (options_.on_status != nullptr) options_.on_status(last_status_);
    for (const TaskEnd& end : std::exchange(undecided_, {})) {
      if (stage_ == Stage::kRunning) Decide(end);
    }
    return;
  }
  if (clock_->Now() - last_answer_ < options_.contact_timeout) return;
  ReportUndecided(/*all=*/true);
  BeginStop(absl::DeadlineExceededError(absl::StrCat(host_->Describe(Coordinator()), " has not answered for ",
                                                     absl::FormatDuration(options_.contact_timeout), ": ",
                                                     status.status().message(), host_->LogTail(Coordinator()))));
}

void JobSupervisor::ReportEvictions() {
  for (const v1::TaskStatus& task : last_status_.tasks()) {
    if (task.state() != v1::TaskStatus::EVICTED) continue;
    const uint64_t incarnation = task.task().incarnation();
    if (std::exchange(reported_[Key(task.task())], incarnation) == incarnation) continue;
    Event(absl::StrCat(host_->Describe(task.task()), " is lost: ", task.reason()));
  }
}

void JobSupervisor::ReportRollback() {
  const int64_t now = last_status_.counts().rollbacks_total();
  const int64_t before = rollbacks_.value_or(options_.followed ? now : 0);
  rollbacks_ = now;
  if (now <= before) return;
  const v1::CheckpointStatus& checkpoint = last_status_.checkpoint();
  const std::string to = checkpoint.last().empty()
                             ? "its beginning"
                             : absl::StrCat("step ", checkpoint.last_step(), " of checkpoint ", checkpoint.last());
  Event(absl::StrCat("the job went back to ", to, " (term ", last_status_.term(), ")",
                     checkpoint.rollback_reason().empty() ? "" : ": ", checkpoint.rollback_reason()));
}

void JobSupervisor::ForgetSurvivedDeaths() {
  const bool trains =
      last_status_.phase() == v1::JobStatus::TRAINING || last_status_.phase() == v1::JobStatus::FINISHING;
  const auto survived = [this, trains](const Death& death) {
    // Who has answered is its successor.
    if (IsCoordinator(death.end)) return true;
    return trains &&
           std::any_of(last_status_.tasks().begin(), last_status_.tasks().end(), [&death](const v1::TaskStatus& task) {
             return Key(task.task()) == Key(death.end.task) && task.state() == v1::TaskStatus::ALIVE &&
                    task.task().incarnation() != death.incarnation;
           });
  };
  std::erase_if(deaths_, survived);
}

bool JobSupervisor::HasBegun() const {
  return last_status_.phase() != v1::JobStatus::STARTING || last_status_.term() > 1;
}

void JobSupervisor::Decide(const TaskEnd& end) {
  if (HasEnded(last_status_)) {
    if (TellsMore(end)) Report(end);
    return;
  }
  if (IsClient(end) && HasBegun() && end.result.ok()) return;
  const bool ends_the_job = IsClient(end) && !WasKilled(end) && !options_.restart_failed;
  if (ends_the_job && HasBegun()) {
    Report(end);
    const std::string headline = deaths_.back().headline, text = headline + deaths_.back().log_tail;
    BeginStop(absl::Status(CodeOf(end), headline));
    stop_reason_ = absl::Status(CodeOf(end), text);
    return;
  }
  if (!WasRefused(end) && (HasBegun() || WasKilled(end))) return StartAgainOrGiveUp(end);
  Report(end);
  // The others would wait for it for cluster.start_timeout_seconds, and a job that is to be evaluated would end without
  // an accuracy.
  const std::string name = host_->Describe(end.task);
  if (end.task.role() == v1::TaskId::EVALUATOR && WasRefused(end)) {
    StopBecauseOf(end, absl::StrCat(name, " cannot evaluate"));
  } else if (!HasBegun()) {
    StopBecauseOf(end, absl::StrCat(name, " ended before the job could begin",
                                    end.result.ok() ? "; its program has not taken part in it" : ""));
  }
}

void JobSupervisor::StopBecauseOf(const TaskEnd& end, const std::string& reason) {
  BeginStop(absl::Status(CodeOf(end), reason));
  stop_reason_ = absl::Status(CodeOf(end), absl::StrCat(reason, LastWords(end.task)));
}

std::string JobSupervisor::LastWords(const v1::TaskId& task) const {
  const auto death = std::find_if(deaths_.rbegin(), deaths_.rend(),
                                  [&task](const Death& other) { return Key(other.end.task) == Key(task); });
  return death == deaths_.rend() ? "" : absl::StrCat("\n", death->headline, death->log_tail);
}

void JobSupervisor::StartAgainOrGiveUp(const TaskEnd& end) {
  const absl::Time now = clock_->Now();
  const std::optional<absl::Duration> delay = end.for_good ? std::nullopt : restarts_.OnLost(end.task, now);
  const Death& death = Record(end);
  if (!delay.has_value()) return GiveUp(end);
  due_.push_back({end, now + *delay});
  const std::string when = *delay > absl::ZeroDuration() ? absl::StrCat(" in ", absl::FormatDuration(*delay)) : "";
  // Of one that was killed the log tells nothing.
  Event(WasKilled(end) ? absl::StrCat(host_->Describe(end.task), " was killed by signal ", end.result.signal,
                                      "; it is started again", when)
                       : absl::StrCat(death.headline, "; it is started again", when, death.log_tail));
  StartWhatIsDue();
}

void JobSupervisor::StartWhatIsDue() {
  const absl::Time now = clock_->Now();
  for (const Restart& restart : std::exchange(due_, {})) {
    if (stage_ != Stage::kRunning) return;
    if (restart.at > now) {
      due_.push_back(restart);
      continue;
    }
    const v1::TaskId& task = restart.end.task;
    const absl::Status started = host_->StartAgain(task);
    if (IsCoordinator(restart.end)) last_answer_ = now;
    if (started.ok()) {
      if (IsClient(restart.end)) clients_left_.insert(task.index());
      continue;
    }
    Event(absl::StrCat(host_->Describe(task), " could not be started again: ", started.message()));
    const std::optional<absl::Duration> delay = restarts_.OnLost(task, now);
    if (delay.has_value()) {
      due_.push_back({restart.end, now + std::max(*delay, options_.poll_interval)});
    } else {
      GiveUp(restart.end);
    }
  }
}

void JobSupervisor::GiveUp(const TaskEnd& end) {
  const RestartPolicy::Options& limits = restarts_.options();
  const std::string reason = absl::StrCat(host_->Describe(end.task), " was lost more than ", limits.restarts_max,
                                          " times within ", absl::FormatDuration(limits.window));
  const v1::TaskId::Role role = end.task.role();
  // A job of clients does not begin without one, and waits long for it.
  const bool is_awaited = IsClient(end) && !HasBegun();
  const bool is_left_out =
      role == v1::TaskId::EVALUATOR || (role == v1::TaskId::WORKER && !is_awaited && OthersAreLeft(end.task));
  if (!is_left_out) return StopBecauseOf(end, reason);
  Event(absl::StrCat(reason, "; it is not started again, and the job goes on without it", LastWords(end.task)));
}

bool JobSupervisor::OthersAreLeft(const v1::TaskId& worker) const {
  return IsToBeStarted(v1::TaskId::WORKER) ||
         std::any_of(last_status_.tasks().begin(), last_status_.tasks().end(), [&worker](const v1::TaskStatus& task) {
           return task.task().role() == v1::TaskId::WORKER && task.task().index() != worker.index() &&
                  task.state() == v1::TaskStatus::ALIVE;
         });
}

bool JobSupervisor::IsToBeStarted(v1::TaskId::Role role) const {
  return std::any_of(due_.begin(), due_.end(),
                     [role](const Restart& restart) { return restart.end.task.role() == role; });
}

const JobSupervisor::Death& JobSupervisor::Record(const TaskEnd& end) {
  Death death = {.end = end,
                 .headline = absl::StrCat(host_->Describe(end.task), " ended with ", end.result.Describe()),
                 .log_tail = host_->LogTail(end.task)};
  for (const v1::TaskStatus& task : last_status_.tasks()) {
    if (Key(task.task()) == Key(end.task)) death.incarnation = task.task().incarnation();
  }
  // The coordinator will say so too.
  if (death.incarnation != 0) reported_[Key(end.task)] = death.incarnation;
  deaths_.push_back(std::move(death));
  return deaths_.back();
}

void JobSupervisor::Report(const TaskEnd& end) {
  const Death& death = Record(end);
  const std::string text = absl::StrCat(death.headline, death.log_tail);
  if (IsClient(end) && IsDone() && client_failure_.empty()) client_failure_ = text;
  Event(text);
}

void JobSupervisor::ReportUndecided(bool all) {
  for (const TaskEnd& end : std::exchange(undecided_, {})) {
    // A client that failed while nobody could be asked may be why; one after it has only followed.
    const bool may_be_why = IsClient(end) && deaths_.empty();
    if (TellsMore(end) || (!end.result.ok() && (all || may_be_why))) Report(end);
  }
}

void JobSupervisor::BeginStop(absl::Status why) {
  stop_reason_ = std::move(why);
  Enter(Stage::kEnding);
  Event(absl::StrCat("stopping the job: ", stop_reason_.message()));
  const absl::Status asked = host_->AskToStop(std::string(stop_reason_.message()), kCallTimeout);
  if (!asked.ok()) Escalate();
}

void JobSupervisor::Enter(Stage stage) {
  stage_ = stage;
  stage_began_ = clock_->Now();
}

void JobSupervisor::Escalate() {
  if (stage_ == Stage::kTerminated) {
    Enter(Stage::kKilled);
    host_->Kill();
  } else {
    Enter(Stage::kTerminated);
    host_->Terminate();
  }
}

absl::Status JobSupervisor::Result(const std::optional<std::string>& recorded_error) const {
  if (!stop_reason_.ok()) return stop_reason_;
  // It may have been killed when its job was done.
  const bool is_done = (recorded_error.has_value() && recorded_error->empty()) ||
                       (coordinator_end_.has_value() && coordinator_end_->ok());
  if (is_done && client_failure_.empty()) return absl::OkStatus();
  if (is_done) return absl::AbortedError(absl::StrCat("the job is done, but ", client_failure_));
  std::string error = recorded_error.value_or(last_status_.error());
  if (error.empty()) {
    const std::string name = host_->Describe(Coordinator());
    error = coordinator_end_.has_value() ? absl::StrCat(name, " ended with ", coordinator_end_->Describe())
                                         : absl::StrCat(name, " is gone");
    absl::StrAppend(&error, host_->LogTail(Coordinator()));
  }
  if (deaths_.empty()) return absl::AbortedError(error);
  std::string text;
  for (const Death& death : deaths_) {
    absl::StrAppend(&text, death.headline, &death == &deaths_.front() ? death.log_tail : "", "\n");
  }
  return absl::Status(CodeOf(deaths_.front().end), absl::StrCat(text, "Then the job failed: ", error));
}

void JobSupervisor::Event(absl::string_view text) const {
  if (options_.on_event != nullptr) options_.on_event(text);
}

}  // namespace rubato
