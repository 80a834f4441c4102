#include "cli/launch/job_supervisor.h"

#include <algorithm>

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
  }
}

void JobSupervisor::OnInterrupt() {
  // Somebody who asks again does not want to wait.
  if (stage_ == Stage::kRunning) {
    BeginStop(absl::CancelledError("stopped by a signal"));
  } else {
    Escalate();
  }
}

void JobSupervisor::OnNews(TaskHost::News news) {
  for (const std::string& note : news.notes) Event(note);
  std::stable_sort(news.ended.begin(), news.ended.end(),
                   [](const TaskEnd& a, const TaskEnd& b) { return OrderOfBlame(a) < OrderOfBlame(b); });
  for (const TaskEnd& end : news.ended) {
    if (IsCoordinator(end)) {
      OnCoordinatorEnded(end.result);
    } else if (!end.result.ok()) {
      OnTaskEnded(end);
    }
  }
}

void JobSupervisor::OnTaskEnded(const TaskEnd& end) {
  // What the launcher has ended says nothing.
  if (!stop_reason_.ok() || stage_ > Stage::kEnding) return;
  if (IsCause(end)) Report(end);
  if (stage_ != Stage::kRunning) return;
  undecided_.push_back(end);
  PollStatus();
}

void JobSupervisor::OnCoordinatorEnded(const ExitResult& result) {
  coordinator_end_ = result;
  undecided_.clear();
  if (stage_ > Stage::kEnding) return;
  Enter(Stage::kEnding);
  // Before the job has begun there may be tasks that the coordinator has not heard of and cannot tell to end.
  if (last_status_.phase() == v1::JobStatus::STARTING) Escalate();
}

void JobSupervisor::OnTime() {
  const absl::Time now = clock_->Now();
  if (stage_ != Stage::kRunning) {
    if (stage_ != Stage::kKilled && now - stage_began_ >= options_.grace) Escalate();
  } else if (now - started_ >= options_.time_limit) {
    BeginStop(absl::DeadlineExceededError(
        absl::StrCat("the job did not end within ", absl::FormatDuration(options_.time_limit))));
  } else if (now >= next_poll_) {
    next_poll_ = now + options_.poll_interval;
    PollStatus();
  }
}

void JobSupervisor::PollStatus() {
  absl::StatusOr<v1::JobStatus> status = host_->GetStatus(kCallTimeout);
  if (status.ok()) {
    last_answer_ = clock_->Now();
    last_status_ = *std::move(status);
    ReportEvictions();
    if (options_.on_status != nullptr) options_.on_status(last_status_);
    for (const TaskEnd& end : std::exchange(undecided_, {})) {
      if (stage_ == Stage::kRunning) Decide(end);
    }
    return;
  }
  if (clock_->Now() - last_answer_ < options_.contact_timeout) return;
  for (const TaskEnd& end : std::exchange(undecided_, {})) {
    if (!IsCause(end)) Report(end);
  }
  BeginStop(absl::DeadlineExceededError(absl::StrCat(host_->Describe(Coordinator()), " has not answered for ",
                                                     absl::FormatDuration(options_.contact_timeout), ": ",
                                                     status.status().message(), host_->LogTail(Coordinator()))));
}

void JobSupervisor::ReportEvictions() {
  for (const v1::TaskStatus& task : last_status_.tasks()) {
    if (task.state() != v1::TaskStatus::EVICTED) continue;
    const uint64_t incarnation = task.task().incarnation();
    if (std::exchange(evicted_[Key(task.task())], incarnation) == incarnation) continue;
    Event(absl::StrCat(host_->Describe(task.task()), " is lost: ", task.reason()));
  }
}

void JobSupervisor::Decide(const TaskEnd& end) {
  if (HasEnded(last_status_)) return;
  if (!IsCause(end)) Report(end);
  if (ShouldStartAgain(end) && StartAgain(end.task)) return;
  // Nobody would take its place: the others would wait for cluster.start_timeout_seconds, and a job that is to be
  // evaluated would end without an accuracy.
  const bool is_evaluator = end.task.role() == v1::TaskId::EVALUATOR;
  if (is_evaluator ? !WasRefused(end) : last_status_.phase() != v1::JobStatus::STARTING) return;
  const std::string reason =
      absl::StrCat(host_->Describe(end.task), is_evaluator ? " cannot evaluate" : " ended before the job could begin");
  BeginStop(absl::Status(CodeOf(end), reason));
  const auto death = std::find_if(deaths_.rbegin(), deaths_.rend(),
                                  [&end](const Death& other) { return Key(other.end.task) == Key(end.task); });
  stop_reason_ = absl::Status(CodeOf(end), absl::StrCat(reason, "\n", death->headline, death->log_tail));
}

bool JobSupervisor::ShouldStartAgain(const TaskEnd& end) {
  switch (end.task.role()) {
    case v1::TaskId::EVALUATOR:
      return !WasRefused(end) && restarts_[Key(end.task)] < host_->RestartsMax();
    case v1::TaskId::WORKER:  // The others do its part.
    case v1::TaskId::SERVER:  // Its parameters are lost, and with them the job.
    case v1::TaskId::COORDINATOR:
    case v1::TaskId::ROLE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::TaskId_Role_TaskId_Role) : break;
  }
  return false;
}

bool JobSupervisor::StartAgain(const v1::TaskId& task) {
  const int times = ++restarts_[Key(task)];
  const absl::Status status = host_->StartAgain(task);
  const std::string name = host_->Describe(task);
  Event(status.ok() ? absl::StrCat(name, " is started again (", times, " of at most ", host_->RestartsMax(), " times)")
                    : absl::StrCat(name, " could not be started again: ", status.message()));
  return status.ok();
}

void JobSupervisor::Report(const TaskEnd& end) {
  Death death = {end, absl::StrCat(host_->Describe(end.task), " ended with ", end.result.Describe()),
                 host_->LogTail(end.task)};
  Event(absl::StrCat(death.headline, death.log_tail));
  deaths_.push_back(std::move(death));
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

absl::Status JobSupervisor::Result(absl::string_view recorded_error) const {
  if (!stop_reason_.ok()) return stop_reason_;
  if (coordinator_end_.has_value() && coordinator_end_->ok()) return absl::OkStatus();
  std::string error(recorded_error.empty() ? last_status_.error() : recorded_error);
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
