#ifndef RUBATO_WORKER_NN_CONV2D_LAYER_H_
#define RUBATO_WORKER_NN_CONV2D_LAYER_H_

#include "worker/nn/layer.h"

namespace rubato {

// Cross-correlation in NCHW order, with a bias per filter. Statuses as CreateLayer's.
absl::StatusOr<std::unique_ptr<Layer>> CreateConv2dLayer(const LayerSpec& spec, const LayerContext& context,
                                                         const LayerParameters& parameters);

}  // namespace rubato

#endif  // RUBATO_WORKER_NN_CONV2D_LAYER_H_
