#include "worker/evaluator_task.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/metrics/plan_metrics.h"

namespace rubato::worker {

absl::Status EvaluatorTask::Work(const Resources& resources) {
  std::unique_ptr<Evaluation> evaluation;
  v1::JobDescription job;
  while (const std::optional<v1::Evaluate> evaluate = NextEvaluation(&job)) {
    if (evaluation == nullptr) {
      evaluation = std::make_unique<Evaluation>(Evaluation::Options{.config = &options().config,
                                                                    .job = job,
                                                                    .task = options().task,
                                                                    .security = options().security.get(),
                                                                    .dataset = resources.dataset.get(),
                                                                    .model = resources.model,
                                                                    .watchdog = resources.watchdog});
    }
    const absl::Time begin = options().clock->Now();
    v1::EvaluationResult result;
    result.set_evaluation_id(evaluate->evaluation_id());
    if (const absl::Status status = Measure(*evaluate, evaluation.get(), &result); !status.ok()) {
      options().log->Warning(absl::StrCat("evaluation ", evaluate->evaluation_id(), ": ", status.message()));
      result.set_error(std::string(status.message()));
    }
    Report(result, options().clock->Now() - begin);
  }
  MutexLock lock(mu_);
  drained_ = told_.drain;
  return told_.error;
}

absl::Status EvaluatorTask::Measure(const v1::Evaluate& evaluate, Evaluation* evaluation,
                                    v1::EvaluationResult* result) {
  {
    MutexLock lock(mu_);
    if (told_.give_up) return told_.Why();
    evaluation_ = evaluation;
  }
  absl::Status status = evaluation->Measure(evaluate, result);
  MutexLock lock(mu_);
  evaluation_ = nullptr;
  return status;
}

void EvaluatorTask::OnStopLocked(const absl::Status&) {
  if (told_.give_up && evaluation_ != nullptr) evaluation_->Cancel();
}

std::optional<v1::Evaluate> EvaluatorTask::NextEvaluation(v1::JobDescription* job) {
  MutexLock lock(mu_);
  for (;;) {
    if (told_.stop || told_.drain) return std::nullopt;
    if (pending_.has_value() && told_.job.has_value()) break;
    changed_.WaitFor(mu_, absl::Milliseconds(500));
  }
  *job = *told_.job;
  return std::exchange(pending_, std::nullopt);
}

void EvaluatorTask::Report(const v1::EvaluationResult& result, absl::Duration took) {
  {
    MutexLock lock(mu_);
    last_result_ = result;
    ++evaluations_;
    if (!result.error().empty()) ++failed_evaluations_;
    evaluation_time_ += took;
  }
  Send(result);
}

void EvaluatorTask::Send(const v1::EvaluationResult& result) {
  v1::TaskMessage message;
  *message.mutable_evaluation() = result;
  session()->Send(std::move(message));
}

void EvaluatorTask::OnDirectiveLocked(const v1::Directive& directive) {
  if (!directive.has_evaluate()) return;
  const uint64_t id = directive.evaluate().evaluation_id();
  if (id > last_evaluation_) {
    last_evaluation_ = id;
    pending_ = directive.evaluate();  // An older one is no longer wanted.
  } else if (id == last_result_.evaluation_id()) {
    Send(last_result_);
  }
}

void EvaluatorTask::AddMetrics(MetricText* text) {
  MutexLock lock(mu_);
  text->Counter("rubato_evaluator_evaluations_total", "Evaluations that were tried.",
                static_cast<double>(evaluations_));
  text->Counter("rubato_evaluator_failures_total", "Evaluations that failed.",
                static_cast<double>(failed_evaluations_));
  text->Counter("rubato_evaluator_evaluation_seconds_total", "Duration of all evaluations.",
                absl::ToDoubleSeconds(evaluation_time_));
  AddPlanMetrics(told_.plan, text);
}

}  // namespace rubato::worker
