#ifndef RUBATO_WORKER_NN_POINTWISE_LAYERS_H_
#define RUBATO_WORKER_NN_POINTWISE_LAYERS_H_

#include "worker/nn/layer.h"

namespace rubato {

// Layers without parameters that treat every element alike. Their backward passes work in place, over dy. Statuses as
// CreateLayer's.
absl::StatusOr<std::unique_ptr<Layer>> CreateActivationLayer(Activation activation, const LayerSpec& spec,
                                                             const LayerContext& context);
// Passes its input on outside training.
absl::StatusOr<std::unique_ptr<Layer>> CreateDropoutLayer(const LayerSpec& spec, const LayerContext& context);
// The same elements as a vector.
absl::StatusOr<std::unique_ptr<Layer>> CreateFlattenLayer(const LayerSpec& spec);

}  // namespace rubato

#endif  // RUBATO_WORKER_NN_POINTWISE_LAYERS_H_
