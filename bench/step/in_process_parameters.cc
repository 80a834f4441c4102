#include "bench/step/in_process_parameters.h"

#include <algorithm>

#include "common/status.h"
#include "kernels/optimizer/initializer.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato::bench {

InProcessParameters::InProcessParameters(const v1::JobConfig& config, const ModelSpec& spec, worker::Model* model,
                                         Backend* backend, LoopbackCopies* copies)
    : optimizer_(config.optimizer()), copies_(copies) {
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const int index = static_cast<int>(i);
    Tensor tensor;
    tensor.weights = backend->HostPointer(model->weight(index));
    tensor.gradient = backend->HostPointer(model->gradient(index));
    tensor.elements = model->weight(index).elements();
    tensor.decays = spec.tensors[i].decays;
    for (int slot = 0; slot < NumSlots(optimizer_.algorithm()); ++slot) {
      tensor.slots.push_back(FloatBuffer::Allocate(tensor.elements));
      std::fill_n(tensor.slots.back()->data(), tensor.elements, InitialSlotValue(optimizer_, slot));
    }
    InitializeSlice(spec.tensors[i], i, config.seed(), 0, tensor.elements, tensor.weights);
    tensors_.push_back(std::move(tensor));
  }
}

absl::StatusOr<bool> InProcessParameters::BeginStep(Step* step) {
  if (!copied_.ok()) return copied_;
  *step = step_;
  ++step_.step;
  return true;
}

void InProcessParameters::PushTensor(int index, const Pushed&) {
  Tensor& tensor = tensors_[index];
  const UpdateRule rule = MakeUpdateRule(optimizer_, optimizer_.learning_rate(), ++tensor.updates, tensor.decays);
  const ByteSpan piece = BytesOf(tensor.gradient, tensor.elements);
  const EncodedGradient gradient = {.pieces = {&piece, 1}};
  std::vector<float*> slots;
  for (const FloatBuffer::Ptr& slot : tensor.slots) slots.push_back(slot->data());
  ReduceAndApply(rule, &gradient, 1, tensor.weights, tensor.weights, slots.data(), slots.data(), tensor.elements);
  if (copies_ != nullptr) copied_.Update(Copy(&tensor));
}

absl::Status InProcessParameters::Copy(Tensor* tensor) {
  const size_t bytes = sizeof(float) * tensor->elements;
  RUBATO_RETURN_IF_ERROR(copies_->Move(tensor->gradient, bytes, &tensor->received_gradient));
  return copies_->Move(tensor->weights, bytes, &tensor->received_weights);
}

}  // namespace rubato::bench
