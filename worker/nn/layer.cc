#include "worker/nn/layer.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/nn/attention_layer.h"
#include "worker/nn/conv2d_layer.h"
#include "worker/nn/embedding_layer.h"
#include "worker/nn/global_average_pool_layer.h"
#include "worker/nn/group_norm_layer.h"
#include "worker/nn/layer_norm_layer.h"
#include "worker/nn/linear_layer.h"
#include "worker/nn/pointwise_layers.h"
#include "worker/nn/pool2d_layer.h"

namespace rubato {

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
  if (spec.source == kModelInput) return DeviceTensor();
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
  switch (spec.config.kind_case()) {
    case v1::LayerConfig::kLinear:
      return CreateLinearLayer(spec, context, parameters);
    case v1::LayerConfig::kConv2D:
      return CreateConv2dLayer(spec, context, parameters);
    case v1::LayerConfig::kMaxPool2D:
      return CreateMaxPool2dLayer(spec, context);
    case v1::LayerConfig::kAveragePool2D:
      return CreateAveragePool2dLayer(spec, context);
    case v1::LayerConfig::kRelu:
      return CreateActivationLayer(Activation::kRelu, spec, context);
    case v1::LayerConfig::kTanh:
      return CreateActivationLayer(Activation::kTanh, spec, context);
    case v1::LayerConfig::kGelu:
      return CreateActivationLayer(Activation::kGelu, spec, context);
    case v1::LayerConfig::kDropout:
      return CreateDropoutLayer(spec, context);
    case v1::LayerConfig::kLayerNorm:
      return CreateLayerNormLayer(spec, context, parameters);
    case v1::LayerConfig::kFlatten:
      return CreateFlattenLayer(spec);
    case v1::LayerConfig::kEmbedding:
      return CreateEmbeddingLayer(spec, context, parameters);
    case v1::LayerConfig::kAttention:
      return CreateAttentionLayer(spec, context);
    case v1::LayerConfig::kGroupNorm:
      return CreateGroupNormLayer(spec, context, parameters);
    case v1::LayerConfig::kGlobalAveragePool:
      return CreateGlobalAveragePoolLayer(spec, context);
    case v1::LayerConfig::kTransformer:
    case v1::LayerConfig::kResidual:
    case v1::LayerConfig::KIND_NOT_SET:
      break;
  }
  return absl::InternalError(absl::StrCat("layer \"", spec.name, "\" is of no kind that can be computed"));
}

}  // namespace rubato
