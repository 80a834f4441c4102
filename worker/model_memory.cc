#include "worker/model_memory.h"

#include <utility>

#include "common/status.h"

namespace rubato::worker {

absl::StatusOr<ModelMemory> ModelMemory::Create(Model* model, Backend* backend, int tensors) {
  ModelMemory memory(model, backend);
  for (int tensor = 0; tensor < tensors; ++tensor) {
    Tensor entry;
    entry.weights = backend->HostPointer(model->weight(tensor));
    entry.gradient = backend->HostPointer(model->gradient(tensor));
    if (entry.weights == nullptr || entry.gradient == nullptr) {
      const int64_t bytes = model->weight(tensor).elements() * static_cast<int64_t>(sizeof(float));
      RUBATO_ASSIGN_OR_RETURN(entry.weights_copy, backend->AllocateHost(bytes));
      RUBATO_ASSIGN_OR_RETURN(entry.gradient_copy, backend->AllocateHostForSending(bytes));
      entry.weights = static_cast<float*>(entry.weights_copy.get());
      entry.gradient = static_cast<float*>(entry.gradient_copy.get());
      memory.is_staged_ = true;
    }
    memory.tensors_.push_back(std::move(entry));
  }
  return memory;
}

absl::Status ModelMemory::Upload(int tensor) {
  const Tensor& entry = tensors_[tensor];
  if (entry.weights_copy == nullptr) return absl::OkStatus();
  const DeviceTensor& weights = model_->weight(tensor);
  return backend_->CopyToDevice(weights, 0, weights.elements(), entry.weights);
}

absl::Status ModelMemory::Download(int tensor) {
  const Tensor& entry = tensors_[tensor];
  if (entry.gradient_copy == nullptr) return absl::OkStatus();
  const DeviceTensor& gradient = model_->gradient(tensor);
  return backend_->CopyToHost(gradient, 0, gradient.elements(), entry.gradient);
}

}  // namespace rubato::worker
