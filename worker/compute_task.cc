#include "worker/compute_task.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/placement_check.h"
#include "common/security/metrics_token.h"
#include "common/session/task_session.h"
#include "common/status.h"
#include "worker/data/open_dataset.h"
#include "worker/ps_client/not_finite.h"
#include "worker/ps_client/server_places.h"

namespace rubato::worker {
namespace {

// How long a task that gives up tries to say why, and one without which the job is over to say goodbye.
constexpr absl::Duration kShortGoodbye = absl::Seconds(1);
// How often a task that says goodbye looks whether it is to end at once.
constexpr absl::Duration kGoodbyePoll = absl::Milliseconds(200);

}  // namespace

absl::Status ComputeTask::Run() {
  RUBATO_ASSIGN_OR_RETURN(spec_, BuildModelSpec(options_.config.model()));
  legacy_ = options_.legacy;
  if (legacy_.dataset == nullptr) {
    absl::StatusOr<std::shared_ptr<const Dataset>> dataset =
        OpenDataset(options_.config, spec_, evaluates() ? Split::kTest : Split::kTrain);
    if (!dataset.ok()) {
      refused_ = evaluates() && IsRefusal(dataset.status());
      return dataset.status();
    }
    legacy_.dataset = *std::move(dataset);
  }
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<TaskPage> page, OpenPage());
  RUBATO_ASSIGN_OR_RETURN(session_, OpenSession(page.get(), *legacy_.dataset));
  const absl::Status status = JoinAndWork(legacy_.dataset);
  if (status.ok() && !evaluates()) AwaitEnd();
  {
    MutexLock lock(mu_);
    leaves_ = true;
    options_.health->SetServing(false);
  }
  Leave(status);
  legacy_.term = session_->term();
  session_.reset();
  return status;
}

void ComputeTask::AwaitEnd() {
  const v1::WorkerProgress done = Heartbeat().progress();
  MutexLock lock(mu_);
  if (told_.stop || told_.drain) return;
  options_.log->Info("has done its part, and waits for the end of the job");
  session_->RegisterDone(done);
  while (!told_.stop && !told_.drain) changed_.Wait(mu_);
}

bool ComputeTask::restarts() {
  MutexLock lock(mu_);
  return told_.restart;
}

absl::StatusOr<std::unique_ptr<TaskPage>> ComputeTask::OpenPage() {
  TaskPage::Options options;
  options.listen = options_.metrics_listen;
  RUBATO_ASSIGN_OR_RETURN(options.token, TokenForMetrics(options_.config, options.listen));
  options.port = legacy_.metrics_port;
  options.task = options_.task;
  options.metrics = [this](MetricText* text) { AddMetrics(text); };
  options.health = options_.health;
  options.clock = options_.clock;
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<TaskPage> page, TaskPage::Create(std::move(options)));
  if (page == nullptr) return page;
  legacy_.metrics_port = page->port();
  options_.log->Info(absl::StrCat("shows its metrics on port ", page->port()));
  return page;
}

absl::StatusOr<std::unique_ptr<Session>> ComputeTask::OpenSession(const TaskPage* page, const Dataset& dataset) {
  Session::Options options = TaskSessionOptions(options_.config, options_.coordinator, options_.security, options_.task,
                                                options_.clock, options_.log);
  options.term = legacy_.term;
  if (page != nullptr) options.registration.set_metrics_address(page->address());
  if (!evaluates()) options.registration.set_train_examples(dataset.size());
  options.heartbeat = [this] { return Heartbeat(); };
  options.on_directive = [this](const v1::Directive& directive) { OnDirective(directive); };
  options.on_lost = [this](absl::Status status) { Cancel(std::move(status)); };
  return Session::Create(std::move(options));
}

absl::Status ComputeTask::JoinAndWork(std::shared_ptr<const Dataset> dataset) {
  StepWatchdog watchdog({.limit = absl::Seconds(options_.config.training().step_timeout_seconds()),
                         .clock = options_.clock,
                         .on_expired = [this](const std::string& what) { Abandon(what); }});
  const absl::StatusOr<std::unique_ptr<WorkerModel>> model = WorkerModel::Create({.config = &options_.config,
                                                                                  .spec = &spec_,
                                                                                  .evaluates = evaluates(),
                                                                                  .sending_memory = SendingMemory(spec_),
                                                                                  .factory = options_.factory,
                                                                                  .watchdog = &watchdog,
                                                                                  .log = options_.log});
  if (!model.ok()) {
    refused_ = IsRefusal(model.status());
    return model.status();
  }
  {
    MutexLock lock(mu_);
    joins_ = true;
  }
  session_->Start();
  return Work({.spec = &spec_, .dataset = std::move(dataset), .model = model->get(), .watchdog = &watchdog});
}

void ComputeTask::Leave(const absl::Status& status) {
  v1::Leaving leaving;
  leaving.set_error(std::string(status.message()));
  if (IsNotFinite(status)) leaving.set_cause(v1::Leaving::NOT_FINITE);
  {
    MutexLock lock(mu_);
    if (!joins_ || told_.restart) return;
    leaving.set_drained(status.ok() && drained_);
  }
  if (leaving.drained()) options_.log->Info("leaves the job, as it was asked to");
  // The coordinator may be away now, and has to learn that this task has done its part, not that it is lost.
  const absl::Duration timeout =
      status.ok() ? absl::Seconds(options_.config.cluster().start_timeout_seconds()) : kShortGoodbye;
  const absl::Time begin = options_.clock->Now();
  absl::Status left;
  do {
    left = session_->Leave(leaving, std::min(kGoodbyePoll, timeout));
  } while (absl::IsDeadlineExceeded(left) &&
           options_.clock->Now() - begin < (IsStopped() ? std::min(timeout, kShortGoodbye) : timeout));
  if (!left.ok()) options_.log->Warning(absl::StrCat("leaves without the coordinator's knowledge: ", left.message()));
}

bool ComputeTask::IsStopped() {
  MutexLock lock(mu_);
  return told_.stop;
}

void ComputeTask::Abandon(const std::string& what) {
  options_.log->Error(absl::StrCat(what, "; gives up"));
  // Otherwise the others would wait for the lease.
  Leave(absl::DeadlineExceededError(what));
  options_.abandon();
}

void ComputeTask::OnDirective(const v1::Directive& directive) {
  MutexLock lock(mu_);
  switch (directive.body_case()) {
    case v1::Directive::kRegistered:
      told_.waiting_for = directive.registered().waiting_for();
      if (!told_.stop && !leaves_) options_.health->SetServing(true);
      break;
    case v1::Directive::kJob:
      TakeJobLocked(directive.job());
      if (directive.job().has_plan()) told_.plan = directive.job().plan();
      break;
    case v1::Directive::kCommit:
      told_.plan = directive.commit().plan();
      break;
    case v1::Directive::kStop:
      StopLocked(directive.stop());
      break;
    case v1::Directive::kShardGrant:
    case v1::Directive::kEvaluate:
    case v1::Directive::kRecordTrace:
    case v1::Directive::kKeepCheckpoints:
      OnDirectiveLocked(directive);
      break;
    case v1::Directive::kRestart:
      RestartLocked(directive.restart());
      break;
    // For the servers, or the session's own.
    case v1::Directive::kAnnounce:
    case v1::Directive::kAbort:
    case v1::Directive::kCheckpoint:
    case v1::Directive::kClock:
    case v1::Directive::BODY_NOT_SET:
      break;
  }
  changed_.NotifyAll();
}

void ComputeTask::TakeJobLocked(const v1::JobDescription& description) {
  if (told_.job.has_value()) return;
  v1::JobDescription job = description;
  absl::Status good = CheckPlacements(job, spec_, options_.config.cluster().partitions_per_server());
  if (good.ok()) good = NameServersByPlace(&job);
  if (!good.ok()) {
    told_.stop = true;
    told_.error = std::move(good);
    return OnStopLocked(told_.Why());
  }
  told_.job = std::move(job);
}

void ComputeTask::StopLocked(const v1::Stop& stop) {
  told_.stop = true;
  if (absl::Status end = HeedStop(stop, options_.config, options_.log); !end.ok()) told_.error = std::move(end);
  OnStopLocked(told_.Why());
}

void ComputeTask::Drain() {
  options_.log->Info("asked to stop: finishes what is at work");
  MutexLock lock(mu_);
  told_.drain = true;
  OnDrainLocked();
  changed_.NotifyAll();
}

void ComputeTask::Cancel(absl::Status why) {
  MutexLock lock(mu_);
  GiveUpLocked(std::move(why));
  changed_.NotifyAll();
}

void ComputeTask::RestartLocked(const v1::Restart& restart) {
  if (std::exchange(told_.restart, true)) return;
  options_.log->Info(absl::StrCat("the job goes back to a checkpoint: ", restart.reason()));
  options_.health->SetServing(false);
  GiveUpLocked(absl::AbortedError(absl::StrCat("the job goes back to a checkpoint: ", restart.reason())));
}

void ComputeTask::GiveUpLocked(absl::Status why) {
  told_.stop = true;
  told_.give_up = true;
  told_.error = std::move(why);
  OnStopLocked(told_.Why());
}

}  // namespace rubato::worker
