#include "worker/training/local_optimizer.h"

#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/learning_rate_schedule.h"
#include "common/status.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato::worker {

LocalOptimizer::LocalOptimizer(const v1::OptimizerConfig& config, Backend* backend)
    : config_(config), backend_(backend), slots_(NumSlots(config.algorithm())) {}

absl::StatusOr<std::unique_ptr<LocalOptimizer>> LocalOptimizer::Create(const v1::OptimizerConfig& config,
                                                                       const Model* model, Backend* backend) {
  auto local = absl::WrapUnique(new LocalOptimizer(config, backend));
  RUBATO_ASSIGN_OR_RETURN(local->squares_, backend->Allocate({1}, ElementType::kFloat64));
  const std::vector<TensorSpec>& tensors = model->spec().tensors;
  for (int i = 0; i < static_cast<int>(tensors.size()); ++i) {
    RUBATO_RETURN_IF_ERROR(Annotate(local->AddTensor(tensors[i], model->weight(i), model->gradient(i)),
                                    absl::StrCat("local updates of ", tensors[i].name)));
  }
  return local;
}

absl::Status LocalOptimizer::AddTensor(const TensorSpec& spec, const DeviceTensor& weights,
                                       const DeviceTensor& gradient) {
  Tensor tensor = {.weights = weights, .gradient = gradient, .decays = spec.decays};
  RUBATO_ASSIGN_OR_RETURN(tensor.start_weights, backend_->Allocate(weights.shape()));
  for (int slot = 0; slot < slots_; ++slot) {
    RUBATO_ASSIGN_OR_RETURN(tensor.slots[slot], backend_->Allocate(weights.shape()));
    RUBATO_ASSIGN_OR_RETURN(tensor.start_slots[slot], backend_->Allocate(weights.shape()));
    RUBATO_RETURN_IF_ERROR(backend_->Fill(InitialSlotValue(config_, slot), tensor.slots[slot]));
  }
  RUBATO_RETURN_IF_ERROR(CopySlots(tensor.slots, tensor.start_slots));
  tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status LocalOptimizer::CopySlots(const Slots& from, const Slots& to) {
  for (int slot = 0; slot < slots_; ++slot) RUBATO_RETURN_IF_ERROR(backend_->Copy(from[slot], to[slot]));
  return absl::OkStatus();
}

absl::StatusOr<bool> LocalOptimizer::IsFinite(const DeviceTensor& tensor) {
  // The squares of finite numbers are far from the end of float64's range, and so is any sum of them.
  RUBATO_RETURN_IF_ERROR(backend_->SumOfSquares(tensor, /*accumulate=*/false, squares_));
  if (host_squares_ == nullptr) {
    RUBATO_ASSIGN_OR_RETURN(host_squares_, backend_->AllocateHost(sizeof(double)));
  }
  RUBATO_RETURN_IF_ERROR(backend_->CopyToHost(squares_, 0, 1, host_squares_.get()));
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<Event> copied, backend_->Record());
  RUBATO_RETURN_IF_ERROR(copied->Wait());
  return std::isfinite(*static_cast<const double*>(host_squares_.get()));
}

absl::Status LocalOptimizer::Start(int index) {
  Tensor& tensor = tensors_[index];
  RUBATO_RETURN_IF_ERROR(backend_->Copy(tensor.weights, tensor.start_weights));
  RUBATO_RETURN_IF_ERROR(CopySlots(tensor.slots, tensor.start_slots));
  tensor.start_updates = tensor.updates;
  return absl::OkStatus();
}

absl::StatusOr<bool> LocalOptimizer::Update(int index, const Place& place) {
  Tensor& tensor = tensors_[index];
  RUBATO_ASSIGN_OR_RETURN(const bool finite, IsFinite(tensor.gradient));
  if (!finite) return false;
  const double learning_rate =
      config_.learning_rate() * place.learning_rate_scale * ScheduleFactor(config_.schedule(), place.epoch, place.step);
  UpdateRule rule = MakeUpdateRule(config_, learning_rate, ++tensor.updates, tensor.decays);
  if (place.momentum) rule.momentum = static_cast<float>(*place.momentum);
  RUBATO_RETURN_IF_ERROR(
      backend_->ApplyUpdate(rule, tensor.gradient, tensor.weights, tensor.slots[0], tensor.slots[1]));
  return true;
}

absl::Status LocalOptimizer::WriteDelta(int index) {
  const Tensor& tensor = tensors_[index];
  RUBATO_RETURN_IF_ERROR(backend_->Copy(tensor.start_weights, tensor.gradient));
  RUBATO_RETURN_IF_ERROR(backend_->Axpy(-1, tensor.weights, tensor.gradient));
  RUBATO_ASSIGN_OR_RETURN(const bool finite, IsFinite(tensor.gradient));
  return finite ? absl::OkStatus() : Restore(index);
}

absl::Status LocalOptimizer::Restore(int index) {
  Tensor& tensor = tensors_[index];
  RUBATO_RETURN_IF_ERROR(backend_->Copy(tensor.start_weights, tensor.weights));
  RUBATO_RETURN_IF_ERROR(CopySlots(tensor.start_slots, tensor.slots));
  tensor.updates = tensor.start_updates;
  return absl::OkStatus();
}

absl::Status LocalOptimizer::FetchSlot(int tensor, int slot, int64_t offset, int64_t count, float* to) {
  return backend_->CopyToHost(tensors_[tensor].slots[slot], offset, count, to);
}

absl::Status LocalOptimizer::SetSlot(int tensor, int slot, int64_t offset, int64_t count, const float* from) {
  return backend_->CopyToDevice(tensors_[tensor].slots[slot], offset, count, from);
}

}  // namespace rubato::worker
