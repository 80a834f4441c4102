#include "worker/worker_model.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/status.h"
#include "worker/memory_plan.h"

namespace rubato::worker {

absl::StatusOr<std::unique_ptr<WorkerModel>> WorkerModel::Create(
    const v1::JobConfig& config, const ModelSpec& spec,
    std::function<std::shared_ptr<void>(size_t bytes)> sending_memory, const BackendMakers& makers, Logger* log) {
  RUBATO_ASSIGN_OR_RETURN(ChosenBackend chosen, ChooseBackend(config.training(), std::move(sending_memory), makers));
  log->Info(absl::StrCat("computes on ", chosen.description));
  if (!chosen.warning.empty()) log->Warning(chosen.warning);
  std::vector<Backend*> backends = {chosen.backend.get()};
  for (const std::unique_ptr<Backend>& peer : chosen.peers) backends.push_back(peer.get());
  const int cards = static_cast<int>(backends.size());
  std::unique_ptr<WorkerModel> made(new WorkerModel(std::move(chosen)));
  std::vector<Replica> replicas;
  for (Backend* backend : backends) {
    RUBATO_ASSIGN_OR_RETURN(const std::string memory, FitMemory(config, spec, backend, cards));
    log->Info(backend == backends.front() ? memory : absl::StrCat("needs as much on ", backend->Name()));
    // Other dropout masks than on the other devices.
    const uint64_t seed = replicas.empty() ? config.seed() : StreamId("replica", config.seed(), replicas.size());
    RUBATO_ASSIGN_OR_RETURN(
        std::unique_ptr<Model> model,
        Model::Create(spec, backend, {.max_batch = LargestPart(config.training(), cards), .seed = seed}));
    replicas.push_back({model.get(), backend});
    made->models_.push_back(std::move(model));
  }
  RUBATO_ASSIGN_OR_RETURN(made->model_, ReplicatedModel::Create(std::move(replicas)));
  return made;
}

}  // namespace rubato::worker
