#include "worker/evaluator_task.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/metrics/plan_metrics.h"
#include "common/session/task_session.h"
#include "common/status.h"
#include "worker/data/open_dataset.h"
#include "worker/evaluator/r_squared.h"

namespace rubato::worker {
namespace {

constexpr absl::Duration kLeaveTimeout = absl::Seconds(1);

// For one snapshot; training may have to reach the step that was asked for.
constexpr absl::Duration kPullTimeout = absl::Seconds(30);

}  // namespace

absl::Status EvaluatorTask::Run() {
  absl::Status status = RunToTheEnd();
  MutexLock lock(mu_);
  refused_ = !joins_ && IsRefusal(status);
  return status;
}

absl::Status EvaluatorTask::RunToTheEnd() {
  const v1::JobConfig& config = options_.config;
  RUBATO_ASSIGN_OR_RETURN(ModelSpec spec, BuildModelSpec(config.model()));
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> dataset, OpenDataset(config, spec, Split::kTest));
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<TaskPage> page, OpenPage());
  Session::Options session_options =
      TaskSessionOptions(config, options_.coordinator, options_.task, options_.clock, options_.log);
  if (page != nullptr) session_options.registration.set_metrics_address(page->address());
  session_options.heartbeat = [] { return v1::Heartbeat(); };
  session_options.on_directive = [this](const v1::Directive& directive) { OnDirective(directive); };
  session_options.on_lost = [this](absl::Status status) { Cancel(std::move(status)); };
  RUBATO_ASSIGN_OR_RETURN(session_, Session::Create(std::move(session_options)));
  absl::Status status = Work(spec, *dataset);
  options_.health->SetServing(false);
  Leave(status);
  session_.reset();
  return status;
}

absl::Status EvaluatorTask::Work(const ModelSpec& spec, const Dataset& dataset) {
  const v1::JobConfig& config = options_.config;
  StepWatchdog watchdog({.limit = absl::Seconds(config.training().step_timeout_seconds()),
                         .clock = options_.clock,
                         .on_expired = [this](const std::string& what) { Abandon(what); }});
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerModel> model, WorkerModel::Create({.config = &config,
                                                                                         .spec = &spec,
                                                                                         .evaluates = true,
                                                                                         .makers = options_.makers,
                                                                                         .watchdog = &watchdog,
                                                                                         .log = options_.log}));
  {
    MutexLock lock(mu_);
    joins_ = true;
  }
  session_->Start();
  return Serve(dataset, {.model = model.get(), .watchdog = &watchdog});
}

void EvaluatorTask::Leave(const absl::Status& status) {
  v1::Leaving leaving;
  leaving.set_error(std::string(status.message()));
  {
    MutexLock lock(mu_);
    if (!joins_) return;
    leaving.set_drained(status.ok() && drain_);
  }
  if (absl::Status left = session_->Leave(leaving, kLeaveTimeout); !left.ok()) {
    options_.log->Warning(absl::StrCat("leaves without the coordinator's knowledge: ", left.message()));
  }
}

void EvaluatorTask::Abandon(const std::string& what) {
  options_.log->Error(absl::StrCat(what, "; gives up"));
  Leave(absl::DeadlineExceededError(what));
  options_.abandon();
}

absl::StatusOr<std::unique_ptr<TaskPage>> EvaluatorTask::OpenPage() {
  TaskPage::Options options;
  options.listen = options_.metrics_listen;
  options.task = options_.task;
  options.metrics = [this](MetricText* text) { AddMetrics(text); };
  options.health = options_.health;
  options.clock = options_.clock;
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<TaskPage> page, TaskPage::Create(std::move(options)));
  if (page != nullptr) options_.log->Info(absl::StrCat("shows its metrics on port ", page->port()));
  return page;
}

void EvaluatorTask::AddMetrics(MetricText* text) {
  MutexLock lock(mu_);
  text->Counter("rubato_evaluator_evaluations_total", "Evaluations that were tried.",
                static_cast<double>(evaluations_));
  text->Counter("rubato_evaluator_failures_total", "Evaluations that failed.",
                static_cast<double>(failed_evaluations_));
  text->Counter("rubato_evaluator_evaluation_seconds_total", "Duration of all evaluations.",
                absl::ToDoubleSeconds(evaluation_time_));
  AddPlanMetrics(plan_, text);
}

std::optional<v1::Evaluate> EvaluatorTask::NextEvaluation(v1::JobDescription* job) {
  MutexLock lock(mu_);
  while (!stop_ && (pending_.empty() || !job_.has_value())) changed_.WaitFor(mu_, absl::Milliseconds(500));
  if (stop_) return std::nullopt;
  *job = *job_;
  v1::Evaluate evaluate = pending_.front();
  pending_.pop_front();
  return evaluate;
}

absl::Status EvaluatorTask::Serve(const Dataset& dataset, const Equipment& equipment) {
  std::unique_ptr<SnapshotPuller> puller;
  v1::JobDescription job;
  while (std::optional<v1::Evaluate> evaluate = NextEvaluation(&job)) {
    if (puller == nullptr) {
      puller = std::make_unique<SnapshotPuller>(job, options_.task, options_.config.cluster().message_bytes());
    }
    v1::EvaluationResult result;
    result.set_evaluation_id(evaluate->evaluation_id());
    const absl::Time begin = options_.clock->Now();
    absl::Status status = Measure(*evaluate, puller.get(), dataset, equipment, &result);
    if (!status.ok()) {
      options_.log->Warning(absl::StrCat("evaluation ", evaluate->evaluation_id(), ": ", status.message()));
      result.set_error(std::string(status.message()));
    }
    v1::TaskMessage message;
    *message.mutable_evaluation() = result;
    {
      MutexLock lock(mu_);
      last_result_ = result;
      ++evaluations_;
      if (!status.ok()) ++failed_evaluations_;
      evaluation_time_ += options_.clock->Now() - begin;
    }
    session_->Send(std::move(message));
  }
  MutexLock lock(mu_);
  return ended_;
}

absl::Status EvaluatorTask::Measure(const v1::Evaluate& evaluate, SnapshotPuller* puller, const Dataset& dataset,
                                    const Equipment& equipment, v1::EvaluationResult* result) {
  Model* const model = equipment.model->lead();
  Backend* const backend = equipment.model->backend();
  const std::string name = absl::StrCat("evaluation ", evaluate.evaluation_id());
  equipment.watchdog->Begin(name);
  absl::Status stored;
  RUBATO_ASSIGN_OR_RETURN(
      SnapshotPuller::Snapshot snapshot,
      puller->Pull(evaluate.at_step(), kPullTimeout, [&](int tensor, int64_t offset, const void* data, int64_t count) {
        StepWatchdog::Watch watch(equipment.watchdog, "weights to the device");
        absl::Status status = backend->CopyToDevice(model->weight(tensor), offset, count, data);
        // The message's memory goes when this returns.
        if (status.ok()) status = backend->Synchronize();
        if (stored.ok()) stored = status;
      }));
  RUBATO_RETURN_IF_ERROR(stored);

  const int64_t batch = options_.config.evaluation().batch_size();
  std::vector<int64_t> indices(batch);
  std::vector<float> inputs(batch * dataset.input_elements());
  std::vector<int32_t> classes(batch * dataset.labels_per_example());
  std::vector<float> targets(batch * std::max<int64_t>(dataset.target_elements(), 1));
  double loss = 0;
  double correct = 0;
  RSquared r2(dataset.target_elements());
  for (int64_t begin = 0; begin < dataset.size(); begin += batch) {
    const int64_t count = std::min(batch, dataset.size() - begin);
    std::iota(indices.begin(), indices.begin() + count, begin);
    RUBATO_RETURN_IF_ERROR(dataset.Read(indices.data(), count, inputs.data(), classes.data(), targets.data()));
    equipment.watchdog->Begin(absl::StrCat("a batch of ", name));
    StepWatchdog::Watch watch(equipment.watchdog, "forward pass");
    if (dataset.label_kind() == LabelKind::kClasses) {
      RUBATO_RETURN_IF_ERROR(model->SetInputs(inputs.data(), classes.data(), count));
    } else {
      RUBATO_RETURN_IF_ERROR(model->SetInputs(inputs.data(), targets.data(), count));
      r2.AddLabels(targets.data(), count);
    }
    RUBATO_ASSIGN_OR_RETURN(LossResult measured, model->EvaluateBatch());
    loss += measured.loss_sum;
    correct += measured.correct;
  }
  result->set_loss(loss / static_cast<double>(dataset.size()));
  if (dataset.label_kind() == LabelKind::kClasses) {
    result->set_accuracy(correct / static_cast<double>(dataset.size()));
  } else if (const std::optional<double> value = r2.Value(loss); value.has_value()) {
    result->set_r2(*value);
  }
  result->set_examples(dataset.size());
  result->set_step(snapshot.step);
  result->set_version_min(snapshot.version_min);
  result->set_version_max(snapshot.version_max);
  return absl::OkStatus();
}

void EvaluatorTask::OnDirective(const v1::Directive& directive) {
  MutexLock lock(mu_);
  if (directive.has_registered() && !stop_) options_.health->SetServing(true);
  if (directive.has_job()) job_ = directive.job();
  if (directive.has_job() && directive.job().has_plan()) plan_ = directive.job().plan();
  if (directive.has_commit()) plan_ = directive.commit().plan();
  if (directive.has_evaluate()) {
    const uint64_t id = directive.evaluate().evaluation_id();
    if (id > last_evaluation_) {
      last_evaluation_ = id;
      pending_.clear();  // An older one is no longer wanted.
      pending_.push_back(directive.evaluate());
    } else if (id == last_result_.evaluation_id()) {
      v1::TaskMessage message;
      *message.mutable_evaluation() = last_result_;
      session_->Send(std::move(message));
    }
  }
  if (directive.has_stop()) {
    stop_ = true;
    if (absl::Status end = HeedStop(directive.stop(), options_.config, options_.log); !end.ok()) ended_ = end;
  }
  changed_.NotifyAll();
}

void EvaluatorTask::Drain() {
  options_.log->Info("asked to stop");
  MutexLock lock(mu_);
  stop_ = true;
  drain_ = true;
  changed_.NotifyAll();
}

void EvaluatorTask::Cancel(absl::Status why) {
  MutexLock lock(mu_);
  stop_ = true;
  ended_ = std::move(why);
  changed_.NotifyAll();
}

}  // namespace rubato::worker
