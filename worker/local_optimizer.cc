#include "worker/local_optimizer.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/optimizer/all_finite.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/schedule.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato::worker {

absl::StatusOr<std::unique_ptr<LocalOptimizer>> LocalOptimizer::Create(const v1::OptimizerConfig& config,
                                                                       const Model* model, Backend* backend) {
  auto local = absl::WrapUnique(new LocalOptimizer(config, backend));
  const std::vector<TensorSpec>& tensors = model->spec().tensors;
  for (int i = 0; i < static_cast<int>(tensors.size()); ++i) {
    RUBATO_RETURN_IF_ERROR(Annotate(local->AddTensor(tensors[i], model->weight(i), model->gradient(i)),
                                    absl::StrCat("local updates of ", tensors[i].name)));
  }
  return local;
}

absl::StatusOr<float*> LocalOptimizer::Allocate(int64_t elements) {
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<void> memory,
                          backend_->AllocateHost(elements * static_cast<int64_t>(sizeof(float))));
  memory_.push_back(std::move(memory));
  return static_cast<float*>(memory_.back().get());
}

absl::StatusOr<float*> LocalOptimizer::HostElements(const DeviceTensor& tensor, DeviceTensor* device) {
  if (float* elements = backend_->HostPointer(tensor); elements != nullptr) return elements;
  *device = tensor;
  return Allocate(tensor.elements());
}

absl::Status LocalOptimizer::Fetch(const DeviceTensor& device, float* copy) {
  if (!device.empty()) RUBATO_RETURN_IF_ERROR(backend_->CopyToHost(device, 0, device.elements(), copy));
  return backend_->Synchronize();
}

absl::Status LocalOptimizer::Send(const DeviceTensor& device, const float* copy) {
  if (device.empty()) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(backend_->CopyToDevice(device, 0, device.elements(), copy));
  // The copy may change again with the next call.
  return backend_->Synchronize();
}

absl::Status LocalOptimizer::AddTensor(const TensorSpec& spec, const DeviceTensor& weights,
                                       const DeviceTensor& gradient) {
  Tensor tensor;
  tensor.elements = weights.elements();
  tensor.decays = spec.decays;
  RUBATO_ASSIGN_OR_RETURN(tensor.weights, HostElements(weights, &tensor.device_weights));
  RUBATO_ASSIGN_OR_RETURN(tensor.gradient, HostElements(gradient, &tensor.device_gradient));
  RUBATO_ASSIGN_OR_RETURN(tensor.start_weights, Allocate(tensor.elements));
  for (int slot = 0; slot < NumSlots(config_.algorithm()); ++slot) {
    RUBATO_ASSIGN_OR_RETURN(float* now, Allocate(tensor.elements));
    RUBATO_ASSIGN_OR_RETURN(float* start, Allocate(tensor.elements));
    std::fill_n(now, tensor.elements, InitialSlotValue(config_, slot));
    std::fill_n(start, tensor.elements, InitialSlotValue(config_, slot));
    tensor.slots.push_back(now);
    tensor.start_slots.push_back(start);
  }
  tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status LocalOptimizer::Start(int index) {
  Tensor& tensor = tensors_[index];
  RUBATO_RETURN_IF_ERROR(Fetch(tensor.device_weights, tensor.weights));
  std::copy_n(tensor.weights, tensor.elements, tensor.start_weights);
  for (size_t slot = 0; slot < tensor.slots.size(); ++slot) {
    std::copy_n(tensor.slots[slot], tensor.elements, tensor.start_slots[slot]);
  }
  tensor.start_updates = tensor.updates;
  return absl::OkStatus();
}

absl::StatusOr<bool> LocalOptimizer::Update(int index, double epoch, int64_t step) {
  Tensor& tensor = tensors_[index];
  RUBATO_RETURN_IF_ERROR(Fetch(tensor.device_gradient, tensor.gradient));
  if (!AllFinite(tensor.gradient, tensor.elements)) return false;
  const double learning_rate = config_.learning_rate() * ScheduleFactor(config_.schedule(), epoch, step);
  const UpdateRule rule = MakeUpdateRule(config_, learning_rate, ++tensor.updates, tensor.decays);
  const GradientPiece piece = {tensor.gradient, tensor.elements * static_cast<int64_t>(sizeof(float))};
  const GradientSpan gradient = {.pieces = &piece, .count = 1, .weight = 1, .codec = v1::NONE};
  ReduceAndApply(rule, &gradient, 1, tensor.weights, tensor.weights, tensor.slots.data(), tensor.elements);
  RUBATO_RETURN_IF_ERROR(Send(tensor.device_weights, tensor.weights));
  return true;
}

absl::Status LocalOptimizer::WriteDelta(int index) {
  const Tensor& tensor = tensors_[index];
  for (int64_t i = 0; i < tensor.elements; ++i) tensor.gradient[i] = tensor.start_weights[i] - tensor.weights[i];
  RUBATO_RETURN_IF_ERROR(Send(tensor.device_gradient, tensor.gradient));
  if (AllFinite(tensor.gradient, tensor.elements)) return absl::OkStatus();
  return Restore(index);
}

absl::Status LocalOptimizer::Restore(int index) {
  Tensor& tensor = tensors_[index];
  std::copy_n(tensor.start_weights, tensor.elements, tensor.weights);
  for (size_t slot = 0; slot < tensor.slots.size(); ++slot) {
    std::copy_n(tensor.start_slots[slot], tensor.elements, tensor.slots[slot]);
  }
  tensor.updates = tensor.start_updates;
  return Send(tensor.device_weights, tensor.weights);
}

}  // namespace rubato::worker
