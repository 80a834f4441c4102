#ifndef RUBATO_WORKER_EVALUATOR_EVALUATION_H_
#define RUBATO_WORKER_EVALUATOR_EVALUATION_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/security/task_security.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/table_keys_of_batch.h"
#include "worker/device/step_watchdog.h"
#include "worker/device/worker_model.h"
#include "worker/evaluator/auc.h"
#include "worker/evaluator/calibration.h"
#include "worker/evaluator/r_squared.h"
#include "worker/evaluator/recall.h"
#include "worker/ps_client/row_puller.h"
#include "worker/ps_client/snapshot_puller.h"

namespace rubato::worker {

// Measures a job's weights, as they are on its servers, on the test set. On the thread of the model; Cancel on any.
class Evaluation {
 public:
  struct Options {
    // Pointers outlive it.
    const v1::JobConfig* config = nullptr;
    v1::JobDescription job;
    v1::TaskId task;
    // May be null.
    const TaskSecurity* security = nullptr;
    const Dataset* dataset = nullptr;
    WorkerModel* model = nullptr;
    StepWatchdog* watchdog = nullptr;
  };

  explicit Evaluation(const Options& options);

  // Pulls the weights that are asked for, and adds to the result what they achieve. Errors of SnapshotPuller::Pull, the
  // dataset and the device; Cancelled.
  absl::Status Measure(const v1::Evaluate& evaluate, v1::EvaluationResult* result);

  // Ends Measure, now and later, with Cancelled.
  void Cancel() {
    cancelled_ = true;
    puller_.Cancel();
    rows_.Cancel();
  }

 private:
  // What is told of examples beside their loss.
  struct Measures {
    Measures(int64_t target_elements, int64_t recall_at) : r2(target_elements), recall(recall_at) {}

    RSquared r2;
    Auc auc;
    Calibration calibration;
    Recall recall;
  };

  absl::StatusOr<SnapshotPuller::Snapshot> PullWeights(const v1::Evaluate& evaluate);
  // The whole test set, in batches.
  absl::StatusOr<LossResult> EvaluateAll(const std::string& name, Measures* measures);
  // Of the batch that the model has just computed, if a measure needs more than the loss of classes.
  absl::Status AddScores(const std::vector<int32_t>& classes, int64_t examples, Measures* measures);

  const Options options_;
  // Puts the rows of the batch's keys behind its features.
  absl::Status AddRows(const Batch& batch, std::vector<float>* inputs);

  SnapshotPuller puller_;
  RowPuller rows_;
  std::vector<KeyHash> hashes_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_EVALUATOR_EVALUATION_H_
