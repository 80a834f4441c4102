#include "worker/model_memory.h"

#include "absl/strings/str_cat.h"

namespace rubato::worker {

absl::StatusOr<ModelMemory> ModelMemory::Create(Model* model, const Backend* backend, int tensors) {
  ModelMemory memory;
  for (int tensor = 0; tensor < tensors; ++tensor) {
    Tensor entry{backend->HostPointer(model->weight(tensor)), backend->HostPointer(model->gradient(tensor))};
    if (entry.weights == nullptr || entry.gradient == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("the memory of backend ", backend->Name(), " cannot be reached from the host"));
    }
    memory.tensors_.push_back(entry);
  }
  return memory;
}

}  // namespace rubato::worker
