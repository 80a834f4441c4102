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

absl::StatusOr<float*> LocalOptimizer::Allocate(const TensorSpec& spec) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor memory, backend_->Allocate(spec.shape));
  memory_.push_back(memory);
  return backend_->HostPointer(memory);
}

absl::Status LocalOptimizer::AddTensor(const TensorSpec& spec, const DeviceTensor& weights,
                                       const DeviceTensor& gradient) {
  Tensor tensor;
  tensor.elements = weights.elements();
  tensor.decays = spec.decays;
  tensor.weights = backend_->HostPointer(weights);
  tensor.gradient = backend_->HostPointer(gradient);
  if (tensor.weights == nullptr || tensor.gradient == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("consistency.sync_every above 1 needs a device whose memory the host "
                     "can reach; that of backend ",
                     backend_->Name(), " cannot be"));
  }
  RUBATO_ASSIGN_OR_RETURN(tensor.start_weights, Allocate(spec));
  for (int slot = 0; slot < NumSlots(config_.algorithm()); ++slot) {
    RUBATO_ASSIGN_OR_RETURN(float* now, Allocate(spec));
    RUBATO_ASSIGN_OR_RETURN(float* start, Allocate(spec));
    std::fill_n(now, tensor.elements, InitialSlotValue(config_, slot));
    std::fill_n(start, tensor.elements, InitialSlotValue(config_, slot));
    tensor.slots.push_back(now);
    tensor.start_slots.push_back(start);
  }
  tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

void LocalOptimizer::Start(int index) {
  Tensor& tensor = tensors_[index];
  std::copy_n(tensor.weights, tensor.elements, tensor.start_weights);
  for (size_t slot = 0; slot < tensor.slots.size(); ++slot) {
    std::copy_n(tensor.slots[slot], tensor.elements, tensor.start_slots[slot]);
  }
  tensor.start_updates = tensor.updates;
}

absl::StatusOr<bool> LocalOptimizer::Update(int index, double epoch, int64_t step) {
  Tensor& tensor = tensors_[index];
  RUBATO_RETURN_IF_ERROR(backend_->Synchronize());
  if (!AllFinite(tensor.gradient, tensor.elements)) return false;
  const double learning_rate = config_.learning_rate() * ScheduleFactor(config_.schedule(), epoch, step);
  const UpdateRule rule = MakeUpdateRule(config_, learning_rate, ++tensor.updates, tensor.decays);
  const GradientPiece piece = {tensor.gradient, tensor.elements * static_cast<int64_t>(sizeof(float))};
  const GradientSpan gradient = {.pieces = &piece, .count = 1, .weight = 1, .codec = v1::NONE};
  ReduceAndApply(rule, &gradient, 1, tensor.weights, tensor.weights, tensor.slots.data(), tensor.elements);
  return true;
}

void LocalOptimizer::WriteDelta(int index) {
  const Tensor& tensor = tensors_[index];
  for (int64_t i = 0; i < tensor.elements; ++i) tensor.gradient[i] = tensor.start_weights[i] - tensor.weights[i];
  if (!AllFinite(tensor.gradient, tensor.elements)) Restore(index);
}

void LocalOptimizer::Restore(int index) {
  Tensor& tensor = tensors_[index];
  std::copy_n(tensor.start_weights, tensor.elements, tensor.weights);
  for (size_t slot = 0; slot < tensor.slots.size(); ++slot) {
    std::copy_n(tensor.start_slots[slot], tensor.elements, tensor.slots[slot]);
  }
  tensor.updates = tensor.start_updates;
}

}  // namespace rubato::worker
