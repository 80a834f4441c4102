#ifndef RUBATO_WORKER_NN_GROUP_NORM_LAYER_H_
#define RUBATO_WORKER_NN_GROUP_NORM_LAYER_H_

#include "worker/nn/layer.h"

namespace rubato {

// The weight is the gain.
absl::StatusOr<std::unique_ptr<Layer>> CreateGroupNormLayer(const LayerSpec& spec, const LayerContext& context,
                                                            const LayerParameters& parameters);

}  // namespace rubato

#endif  // RUBATO_WORKER_NN_GROUP_NORM_LAYER_H_
