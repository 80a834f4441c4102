#ifndef RUBATO_WORKER_DEVICE_WORKER_MODEL_H_
#define RUBATO_WORKER_DEVICE_WORKER_MODEL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "worker/device/backend_choice.h"
#include "worker/device/step_watchdog.h"
#include "worker/nn/replicated_model.h"

namespace rubato::worker {

// The devices of a worker or an evaluator, and the model on each of them. Used as the model and the backends are.
class WorkerModel {
 public:
  struct Options {
    const v1::JobConfig* config = nullptr;
    const ModelSpec* spec = nullptr;
    // An evaluator's: one device, and batches of evaluation.batch_size.
    bool evaluates = false;
    // Where gradients are put that peers on this host read; may be empty.
    std::function<std::shared_ptr<void>(size_t bytes)> sending_memory;
    BackendFactory factory;
    // Is told of waits for the devices; outlives the model. May be null.
    StepWatchdog* watchdog = nullptr;
    Logger* log = nullptr;
  };

  // Logs what computes and how much memory it takes. Errors of ChooseBackend, FitMemory or FitEvaluation, and
  // Model::Create.
  static absl::StatusOr<std::unique_ptr<WorkerModel>> Create(const Options& options);
  // Waits for the devices.
  ~WorkerModel();
  WorkerModel(const WorkerModel&) = delete;
  WorkerModel& operator=(const WorkerModel&) = delete;

  // Waits until the devices have done, or given up, all that they were given. From then on host memory may go that they
  // copy from and to.
  void AwaitDevices();

  ReplicatedModel* model() { return &*model_; }
  // With the gradients of a batch.
  Model* lead() { return models_.front().get(); }
  Backend* backend() { return devices_.backend.get(); }
  v1::TrainingConfig::Precision precision() const { return devices_.precision; }

 private:
  WorkerModel(ChosenBackend devices, StepWatchdog* watchdog) : devices_(std::move(devices)), watchdog_(watchdog) {}

  std::vector<Backend*> Backends() const;

  const ChosenBackend devices_;
  StepWatchdog* const watchdog_;
  std::vector<std::unique_ptr<Model>> models_;
  std::optional<ReplicatedModel> model_;
};

// Whether Create, or what is read before it, fails the same way when the task is started again: the machine has not
// what the config asks for.
bool IsRefusal(const absl::Status& status);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DEVICE_WORKER_MODEL_H_
