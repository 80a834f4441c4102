#ifndef RUBATO_WORKER_NN_POOL2D_LAYER_H_
#define RUBATO_WORKER_NN_POOL2D_LAYER_H_

#include "worker/nn/layer.h"

namespace rubato {

// The largest, or the mean, element of each window. Statuses as CreateLayer's.
absl::StatusOr<std::unique_ptr<Layer>> CreateMaxPool2dLayer(const LayerSpec& spec, const LayerContext& context);
absl::StatusOr<std::unique_ptr<Layer>> CreateAveragePool2dLayer(const LayerSpec& spec, const LayerContext& context);

}  // namespace rubato

#endif  // RUBATO_WORKER_NN_POOL2D_LAYER_H_
