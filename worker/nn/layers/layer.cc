#include "worker/nn/layers/layer.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {

Shape BatchShape(int64_t n, const Shape& shape) {
  Shape result = {n};
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

DeviceTensor AsRows(const DeviceTensor& tensor, int64_t width) {
  return tensor.Reshaped({tensor.elements() / width, width});
}

absl::StatusOr<DeviceTensor> AllocateOutput(const LayerSpec& spec, const LayerContext& context) {
  return context.backend->Allocate(BatchShape(context.max_batch, spec.output), context.backend->ActivationType());
}

absl::StatusOr<DeviceTensor> AllocateInputGradient(const LayerSpec& spec, const LayerContext& context) {
  if (!spec.needs_input_gradient) return DeviceTensor();
  return context.backend->Allocate(BatchShape(context.max_batch, spec.input), context.backend->ActivationType());
}

absl::StatusOr<OperandWeight> OperandWeight::Create(Backend* backend, const DeviceTensor& weight) {
  if (backend->ActivationType() == weight.type()) return OperandWeight(backend, weight, weight);
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor operand, backend->Allocate(weight.shape(), backend->ActivationType()));
  return OperandWeight(backend, weight, std::move(operand));
}

absl::Status OperandWeight::Update() const {
  return operand_.type() == weight_.type() ? absl::OkStatus() : backend_->Copy(weight_, operand_);
}

absl::StatusOr<std::unique_ptr<Layer>> CreateLayer(const LayerSpec& spec, const LayerContext& context,
                                                   const LayerParameters& parameters) {
  LayerFactory* const create = FindLayerFactory(spec.config.kind_case());
  if (create == nullptr) {
    return absl::InternalError(absl::StrCat("layer \"", spec.name, "\" is of no kind that can be computed"));
  }
  return create(spec, context, parameters);
}

}  // namespace rubato::worker
