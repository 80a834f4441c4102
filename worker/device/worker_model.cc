#include "worker/device/worker_model.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/status.h"
#include "worker/device/memory_plan.h"

namespace rubato::worker {

absl::StatusOr<std::unique_ptr<WorkerModel>> WorkerModel::Create(const Options& options) {
  StepWatchdog::Watch watch(options.watchdog, "open the device and allocate the model");
  const v1::JobConfig& config = *options.config;
  v1::TrainingConfig training = config.training();
  if (options.evaluates) training.set_gpus(1);
  RUBATO_ASSIGN_OR_RETURN(ChosenBackend chosen, ChooseBackend(training, options.sending_memory, options.factory));
  options.log->Info(absl::StrCat("computes on ", chosen.description));
  if (!chosen.warning.empty()) options.log->Warning(chosen.warning);
  std::unique_ptr<WorkerModel> made(new WorkerModel(std::move(chosen), options.watchdog));
  const std::vector<Backend*> backends = made->Backends();
  const int gpus = static_cast<int>(backends.size());
  const int64_t batch = options.evaluates ? config.evaluation().batch_size() : LargestMicroBatch(config, gpus);
  std::vector<Replica> replicas;
  for (Backend* backend : backends) {
    RUBATO_ASSIGN_OR_RETURN(const std::string memory, options.evaluates
                                                          ? FitEvaluation(config, *options.spec, backend)
                                                          : FitMemory(config, *options.spec, backend, gpus));
    options.log->Info(backend == backends.front() ? memory : absl::StrCat("needs as much on ", backend->Name()));
    // Other dropout masks than on the other devices.
    const uint64_t seed = replicas.empty() ? config.seed() : StreamId("replica", config.seed(), replicas.size());
    RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                            Model::Create(*options.spec, backend, {.max_batch = batch, .seed = seed}));
    replicas.push_back({model.get(), backend});
    made->models_.push_back(std::move(model));
  }
  RUBATO_ASSIGN_OR_RETURN(made->model_, ReplicatedModel::Create(std::move(replicas)));
  return made;
}

WorkerModel::~WorkerModel() { AwaitDevices(); }

void WorkerModel::AwaitDevices() {
  if (watchdog_ != nullptr) watchdog_->Begin("the end");
  StepWatchdog::Watch watch(watchdog_, "all that the device was given");
  // One that has failed is no reason not to wait for the others.
  for (Backend* backend : Backends()) backend->Synchronize().IgnoreError();
}

std::vector<Backend*> WorkerModel::Backends() const {
  std::vector<Backend*> backends = {devices_.backend.get()};
  for (const std::unique_ptr<Backend>& peer : devices_.peers) backends.push_back(peer.get());
  return backends;
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsFailedPrecondition(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace rubato::worker
