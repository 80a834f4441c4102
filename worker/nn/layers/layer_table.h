#ifndef RUBATO_WORKER_NN_LAYERS_LAYER_TABLE_H_
#define RUBATO_WORKER_NN_LAYERS_LAYER_TABLE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/nn/layers/layer.h"

namespace rubato::worker {

// Makes a layer of one kind, as CreateLayer does. Each is in a file of its own; the three activations, the two pools
// and the two interactions are in one.
using LayerFactory = absl::StatusOr<std::unique_ptr<Layer>>(const LayerSpec& spec, const LayerContext& context,
                                                            const LayerParameters& parameters);

LayerFactory CreateAttentionLayer;
LayerFactory CreateAveragePool2dLayer;
LayerFactory CreateConv2dLayer;
LayerFactory CreateDotInteractionLayer;
LayerFactory CreateDropoutLayer;
LayerFactory CreateEmbeddingLayer;
LayerFactory CreateFactorizationMachineLayer;
LayerFactory CreateFlattenLayer;
LayerFactory CreateGeluLayer;
LayerFactory CreateGlobalAveragePoolLayer;
LayerFactory CreateGroupNormLayer;
LayerFactory CreateLayerNormLayer;
LayerFactory CreateLinearLayer;
LayerFactory CreateMaxPool2dLayer;
LayerFactory CreateReluLayer;
LayerFactory CreateTanhLayer;

// Null for what BuildModelSpec replaces by the layers that it consists of, and for joins (join.h).
// Has no `default:`, so that a kind that is forgotten fails the build.
inline LayerFactory* FindLayerFactory(v1::LayerConfig::KindCase kind) {
  switch (kind) {
    case v1::LayerConfig::kLinear:
      return CreateLinearLayer;
    case v1::LayerConfig::kConv2D:
      return CreateConv2dLayer;
    case v1::LayerConfig::kMaxPool2D:
      return CreateMaxPool2dLayer;
    case v1::LayerConfig::kAveragePool2D:
      return CreateAveragePool2dLayer;
    case v1::LayerConfig::kRelu:
      return CreateReluLayer;
    case v1::LayerConfig::kTanh:
      return CreateTanhLayer;
    case v1::LayerConfig::kGelu:
      return CreateGeluLayer;
    case v1::LayerConfig::kDropout:
      return CreateDropoutLayer;
    case v1::LayerConfig::kLayerNorm:
      return CreateLayerNormLayer;
    case v1::LayerConfig::kFlatten:
      return CreateFlattenLayer;
    case v1::LayerConfig::kEmbedding:
      return CreateEmbeddingLayer;
    case v1::LayerConfig::kAttention:
      return CreateAttentionLayer;
    case v1::LayerConfig::kGroupNorm:
      return CreateGroupNormLayer;
    case v1::LayerConfig::kGlobalAveragePool:
      return CreateGlobalAveragePoolLayer;
    case v1::LayerConfig::kDotInteraction:
      return CreateDotInteractionLayer;
    case v1::LayerConfig::kFactorizationMachine:
      return CreateFactorizationMachineLayer;
    case v1::LayerConfig::kTransformer:
    case v1::LayerConfig::kResidual:
    case v1::LayerConfig::kBranches:
    case v1::LayerConfig::kCross:
    case v1::LayerConfig::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_NN_LAYERS_LAYER_TABLE_H_
