#include "worker/worker_task.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/checkpoint_directory.h"
#include "common/learning_rate_schedule.h"
#include "common/status.h"
#include "common/task.h"
#include "worker/ps_client/sending_arena.h"
#include "worker/ps_client/worker_metrics.h"

namespace rubato::worker {

WorkerTask::WorkerTask(Options task_options)
    : ComputeTask(std::move(task_options)),
      cuts_({.directory = CheckpointDirectory(options().config),
             .job_name = options().config.name(),
             .servers = options().config.cluster().servers(),
             .task = options().task,
             .clock = options().clock,
             .log = options().log}) {}

absl::Status WorkerTask::Work(const Resources& resources) {
  const absl::Status status = TrainAsMember(resources);
  // A clean end that is no failure of this worker.
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

absl::Status WorkerTask::TrainAsMember(const Resources& resources) {
  v1::JobDescription job;
  RUBATO_ASSIGN_OR_RETURN(const v1::Plan plan, AwaitMembership(&job));
  if (!options().network.is_none()) {
    RUBATO_ASSIGN_OR_RETURN(link_, LinkRelay::Create(options().network, options().clock));
  }
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingRun> run,
                          TrainingRun::Create(RunOptions(resources, std::move(job))));
  RUBATO_RETURN_IF_ERROR(Train(plan, run.get()));
  return run->SaveResiduals();
}

absl::StatusOr<v1::Plan> WorkerTask::AwaitMembership(v1::JobDescription* job) {
  absl::Time next_log = options().clock->Now() + absl::Seconds(2);
  MutexLock lock(mu_);
  for (;;) {
    if (told_.stop) return told_.Why();
    if (told_.drain) {
      drained_ = true;
      return absl::CancelledError("asked to stop");
    }
    if (told_.job.has_value() && IsMember(told_.plan)) {
      *job = *told_.job;
      return told_.plan;
    }
    // The coordinator has a deadline for the start of the job and says when it has passed.
    const absl::Time now = options().clock->Now();
    if (now >= next_log) {
      const std::string& what = told_.waiting_for;
      options().log->Info(absl::StrCat("waits for ", what.empty() ? "the coordinator" : what));
      next_log = now + absl::Seconds(5);
    }
    changed_.WaitFor(mu_, absl::Milliseconds(200));
  }
}

TrainingRun::Options WorkerTask::RunOptions(const Resources& resources, v1::JobDescription job) {
  return {.config = &options().config,
          .task = options().task,
          .security = options().security,
          .job = std::move(job),
          .spec = resources.spec,
          .dataset = resources.dataset,
          .model = resources.model,
          .watchdog = resources.watchdog,
          .arena = arena_,
          .slow = options().slow,
          .link = link_,
          .send = [this](v1::TaskMessage message) { session()->Send(std::move(message)); },
          .beat = [this] { session()->Beat(); },
          .cuts = &cuts_,
          .cancelled =
              [this] {
                MutexLock lock(mu_);
                return told_.stop || told_.restart;
              },
          .clock_offset = [this] { return session()->clock_offset(); },
          .is_reporter = [this] { return IsFirstMember(); },
          .clock = options().clock,
          .log = options().log};
}

absl::Status WorkerTask::Train(const v1::Plan& plan, TrainingRun* run) {
  {
    MutexLock lock(mu_);
    run_ = run;
    if (told_.stop) run->Cancel(told_.Why());
    if (told_.drain) run->Drain();
  }
  absl::Status status = run->Train(plan);
  MutexLock lock(mu_);
  drained_ = run->drained();
  last_trace_ = run->last_trace();
  last_progress_ = ProgressLocked();  // For the heartbeat that goes before the goodbye.
  run_ = nullptr;
  // If it was cancelled, whatever it noticed first has the same reason.
  return told_.stop && absl::IsCancelled(status) ? told_.Why() : status;
}

std::function<std::shared_ptr<void>(size_t bytes)> WorkerTask::SendingMemory(const ModelSpec& spec) {
  // Behind a link nobody else's memory can be read.
  if (!options().network.is_none()) return nullptr;
  arena_ = CreateSendingArena(options().config, spec, TaskName(options().task), options().log);
  return [arena = arena_](size_t bytes) { return AllocateIn(arena, bytes); };
}

bool WorkerTask::IsMember(const v1::Plan& plan) const {
  return std::any_of(plan.members().begin(), plan.members().end(),
                     [&](const v1::TaskId& member) { return SameTask(member, options().task); });
}

bool WorkerTask::IsFirstMember() {
  MutexLock lock(mu_);
  return told_.plan.members_size() > 0 && SameTask(told_.plan.members(0), options().task);
}

v1::WorkerProgress WorkerTask::ProgressLocked() {
  if (run_ == nullptr) return last_progress_;
  v1::WorkerProgress progress;
  run_->Describe(&progress);
  if (progress.examples_total() > 0) {
    const v1::OptimizerConfig& optimizer = options().config.optimizer();
    progress.set_learning_rate(optimizer.learning_rate() * LearningRateScale(told_.plan) *
                               ScheduleFactor(optimizer.schedule(), progress.epoch(), progress.step()));
  }
  return progress;
}

void WorkerTask::AddMetrics(MetricText* text) {
  v1::Plan plan;
  v1::WorkerProgress progress;
  {
    MutexLock lock(mu_);
    plan = told_.plan;
    progress = ProgressLocked();
  }
  AddWorkerMetrics(progress, plan, text);
}

v1::Heartbeat WorkerTask::Heartbeat() {
  v1::Heartbeat heartbeat;
  if (v1::CutProgress cut = cuts_.progress(); cut.id() != 0) *heartbeat.mutable_cut() = std::move(cut);
  MutexLock lock(mu_);
  *heartbeat.mutable_progress() = ProgressLocked();
  *heartbeat.mutable_trace() = run_ == nullptr ? last_trace_ : run_->last_trace();
  return heartbeat;
}

void WorkerTask::OnDirectiveLocked(const v1::Directive& directive) {
  if (directive.has_shard_grant() && run_ != nullptr) run_->OnGrant(directive.shard_grant());
  if (directive.has_keep_checkpoints()) cuts_.Keep(directive.keep_checkpoints());
  if (directive.has_record_trace()) RecordTraceLocked(directive.record_trace());
}

void WorkerTask::RecordTraceLocked(const v1::RecordTrace& request) {
  if (run_ != nullptr) return run_->Record(request);
  last_trace_.Clear();
  last_trace_.set_id(request.id());
  last_trace_.set_error("the worker does not train");
}

void WorkerTask::OnDrainLocked() {
  if (run_ != nullptr) run_->Drain();
}

void WorkerTask::OnStopLocked(const absl::Status& why) {
  if (run_ != nullptr) run_->Cancel(why);
}

}  // namespace rubato::worker
