#include "worker/ps_client/model_memory.h"

#include <utility>

#include "common/status.h"

namespace rubato::worker {

absl::StatusOr<ModelMemory> ModelMemory::Create(const ReplicatedModel* model) {
  ModelMemory memory(model);
  Backend* const backend = model->replicas().front().backend;
  for (size_t tensor = 0; tensor < model->spec().tensors.size(); ++tensor) {
    const DeviceTensor& weight = model->lead().weight(static_cast<int>(tensor));
    Tensor entry;
    entry.weights = backend->HostPointer(weight);
    entry.gradient = backend->HostPointer(model->lead().gradient(static_cast<int>(tensor)));
    if (model->replicas().size() > 1 || entry.weights == nullptr || entry.gradient == nullptr) {
      const int64_t bytes = weight.elements() * static_cast<int64_t>(sizeof(float));
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
  for (const Replica& replica : model_->replicas()) {
    const DeviceTensor& weights = replica.model->weight(tensor);
    RUBATO_RETURN_IF_ERROR(replica.backend->CopyToDevice(weights, 0, weights.elements(), entry.weights));
  }
  return absl::OkStatus();
}

absl::Status ModelMemory::Download(int tensor) {
  const Tensor& entry = tensors_[tensor];
  if (entry.gradient_copy == nullptr) return absl::OkStatus();
  const DeviceTensor& gradient = model_->lead().gradient(tensor);
  return model_->replicas().front().backend->CopyToHost(gradient, 0, gradient.elements(), entry.gradient);
}

absl::Status ModelMemory::Synchronize() {
  for (const Replica& replica : model_->replicas()) RUBATO_RETURN_IF_ERROR(replica.backend->Synchronize());
  return absl::OkStatus();
}

}  // namespace rubato::worker
