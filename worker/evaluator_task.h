#ifndef RUBATO_WORKER_EVALUATOR_TASK_H_
#define RUBATO_WORKER_EVALUATOR_TASK_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/health/health.h"
#include "common/log.h"
#include "common/metrics/task_page.h"
#include "common/mutex.h"
#include "common/session/session.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/data/dataset.h"
#include "worker/device/backend_choice.h"
#include "worker/device/step_watchdog.h"
#include "worker/device/worker_model.h"
#include "worker/evaluator/snapshot_puller.h"

namespace rubato::worker {

// An evaluator process: pulls snapshots when the coordinator asks for it, measures loss and accuracy on the test set,
// and reports them. Keeps nothing: a lost one is replaced by starting another.
class EvaluatorTask {
 public:
  struct Options {
    v1::JobConfig config;
    v1::TaskId task;
    std::string coordinator;
    // Where to answer HTTP requests for metrics, "host:port"; empty: nowhere.
    std::string metrics_listen;
    // Says whether the task is ready for work. Required.
    Health* health = nullptr;
    Clock* clock = nullptr;
    Logger* log = nullptr;
    // Ends the process at once. Called where the device does not answer, so that Run() cannot return. Required.
    std::function<void()> abandon;
    BackendMakers makers;
  };

  explicit EvaluatorTask(Options options) : options_(std::move(options)) {}

  // Returns when the job is over. The status says why it was given up.
  absl::Status Run();
  // Whether that is because of something that stays so when the task is started again, found before it joined the job:
  // bad test data, or a device or memory that the machine has not. After Run().
  bool refused() const { return refused_; }
  // Both end Run() early, when the evaluation at work is done. Thread-safe.
  // From a first signal: the evaluator leaves without blame; Run() returns OK.
  void Drain();
  void Cancel(absl::Status why);

 private:
  // What is there before the job is joined.
  struct Equipment {
    WorkerModel* model;
    StepWatchdog* watchdog;
  };

  absl::Status RunToTheEnd();
  absl::StatusOr<std::unique_ptr<TaskPage>> OpenPage();
  void AddMetrics(MetricText* text);
  void OnDirective(const v1::Directive& directive);
  // Waits for the next evaluation to do; nothing when the job is over.
  std::optional<v1::Evaluate> NextEvaluation(v1::JobDescription* job);
  // Opens the device, and joins the job only then.
  absl::Status Work(const ModelSpec& spec, const Dataset& dataset);
  absl::Status Serve(const Dataset& dataset, const Equipment& equipment);
  absl::Status Measure(const v1::Evaluate& evaluate, SnapshotPuller* puller, const Dataset& dataset,
                       const Equipment& equipment, v1::EvaluationResult* result);
  // The device hangs: tells the coordinator, where it knows of this evaluator, and ends. On the watchdog's thread.
  void Abandon(const std::string& what);
  void Leave(const absl::Status& status);

  const Options options_;
  std::unique_ptr<Session> session_;  // Set before and reset after everything that uses it.
  bool refused_ = false;

  Mutex mu_;
  CondVar changed_;
  // The coordinator has heard of this evaluator, or will.
  bool joins_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<v1::JobDescription> job_ ABSL_GUARDED_BY(mu_);
  std::deque<v1::Evaluate> pending_ ABSL_GUARDED_BY(mu_);
  uint64_t last_evaluation_ ABSL_GUARDED_BY(mu_) = 0;
  // Repeated for an evaluation that is asked for again: the answer was lost.
  v1::EvaluationResult last_result_ ABSL_GUARDED_BY(mu_);
  int64_t evaluations_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t failed_evaluations_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration evaluation_time_ ABSL_GUARDED_BY(mu_);
  v1::Plan plan_ ABSL_GUARDED_BY(mu_);  // The newest that the coordinator told.
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool drain_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_EVALUATOR_TASK_H_
