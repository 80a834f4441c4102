#ifndef RUBATO_WORKER_NN_GLOBAL_AVERAGE_POOL_LAYER_H_
#define RUBATO_WORKER_NN_GLOBAL_AVERAGE_POOL_LAYER_H_

#include "worker/nn/layer.h"

namespace rubato {

absl::StatusOr<std::unique_ptr<Layer>> CreateGlobalAveragePoolLayer(const LayerSpec& spec, const LayerContext& context);

}  // namespace rubato

#endif  // RUBATO_WORKER_NN_GLOBAL_AVERAGE_POOL_LAYER_H_
