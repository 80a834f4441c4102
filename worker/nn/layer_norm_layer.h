#ifndef RUBATO_WORKER_NN_LAYER_NORM_LAYER_H_
#define RUBATO_WORKER_NN_LAYER_NORM_LAYER_H_

#include "worker/nn/layer.h"

namespace rubato {

// Normalises each position of a sequence, or each example over all of its elements; the gain is the parameters' weight.
// Statuses as CreateLayer's.
absl::StatusOr<std::unique_ptr<Layer>> CreateLayerNormLayer(const LayerSpec& spec, const LayerContext& context,
                                                            const LayerParameters& parameters);

}  // namespace rubato

#endif  // RUBATO_WORKER_NN_LAYER_NORM_LAYER_H_
