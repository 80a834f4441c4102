#ifndef RUBATO_WORKER_WORKER_MODEL_H_
#define RUBATO_WORKER_WORKER_MODEL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "worker/backend_choice.h"
#include "worker/nn/replicated_model.h"

namespace rubato::worker {

// A worker's devices, and the model on each of them. Used as the model and the backends are.
class WorkerModel {
 public:
  // Logs what computes and how much memory it takes. Errors of ChooseBackend, FitMemory and Model::Create.
  static absl::StatusOr<std::unique_ptr<WorkerModel>> Create(
      const v1::JobConfig& config, const ModelSpec& spec,
      std::function<std::shared_ptr<void>(size_t bytes)> sending_memory, const BackendMakers& makers, Logger* log);

  ReplicatedModel* model() { return &*model_; }
  // With the gradients of a batch.
  Model* lead() { return models_.front().get(); }
  Backend* backend() { return devices_.backend.get(); }
  v1::TrainingConfig::Precision precision() const { return devices_.precision; }

 private:
  explicit WorkerModel(ChosenBackend devices) : devices_(std::move(devices)) {}

  const ChosenBackend devices_;
  std::vector<std::unique_ptr<Model>> models_;
  std::optional<ReplicatedModel> model_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_WORKER_MODEL_H_
