#include "worker/model_memory.h"

#include <cstring>

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

void ModelMemory::Store(int tensor, int64_t offset, const void* data, int64_t count) {
  std::memcpy(tensors_[tensor].weights + offset, data, count * sizeof(float));
}

grpc::Slice ModelMemory::Gradient(int tensor, int64_t offset, int64_t count) {
  return grpc::Slice(tensors_[tensor].gradient + offset, count * sizeof(float), grpc::Slice::STATIC_SLICE);
}

}  // namespace rubato::worker
