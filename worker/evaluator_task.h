#ifndef RUBATO_WORKER_EVALUATOR_TASK_H_
#define RUBATO_WORKER_EVALUATOR_TASK_H_

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "worker/compute_task.h"
#include "worker/evaluator/evaluation.h"

namespace rubato::worker {

// An evaluator process: pulls snapshots when the coordinator asks for it, measures loss and accuracy on the test set,
// and reports them. Keeps nothing: a lost one is replaced by starting another. An evaluation at work is finished before
// it ends, unless it is given up.
class EvaluatorTask : public ComputeTask {
 public:
  using ComputeTask::ComputeTask;

 private:
  absl::Status Work(const Resources& resources) override;
  void AddMetrics(MetricText* text) override;
  void OnDirectiveLocked(const v1::Directive& directive) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnStopLocked(const absl::Status& why) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The callbacks know of it meanwhile.
  absl::Status Measure(const v1::Evaluate& evaluate, Evaluation* evaluation, v1::EvaluationResult* result);
  // Waits for the next evaluation to do; nothing when the job is over.
  std::optional<v1::Evaluate> NextEvaluation(v1::JobDescription* job);
  void Report(const v1::EvaluationResult& result, absl::Duration took);
  void Send(const v1::EvaluationResult& result);

  Evaluation* evaluation_ ABSL_GUARDED_BY(mu_) = nullptr;  // At work.
  std::optional<v1::Evaluate> pending_ ABSL_GUARDED_BY(mu_);
  uint64_t last_evaluation_ ABSL_GUARDED_BY(mu_) = 0;
  // Repeated for an evaluation that is asked for again: the answer was lost.
  v1::EvaluationResult last_result_ ABSL_GUARDED_BY(mu_);
  int64_t evaluations_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t failed_evaluations_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration evaluation_time_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_EVALUATOR_TASK_H_
