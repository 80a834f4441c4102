#ifndef RUBATO_WORKER_NN_LINEAR_LAYER_H_
#define RUBATO_WORKER_NN_LINEAR_LAYER_H_

#include "worker/nn/layer.h"

namespace rubato {

// y = x weight^T + bias, over flattened inputs. Statuses as CreateLayer's.
absl::StatusOr<std::unique_ptr<Layer>> CreateLinearLayer(const LayerSpec& spec, const LayerContext& context,
                                                         const LayerParameters& parameters);

}  // namespace rubato

#endif  // RUBATO_WORKER_NN_LINEAR_LAYER_H_
