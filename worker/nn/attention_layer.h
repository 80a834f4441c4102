#ifndef RUBATO_WORKER_NN_ATTENTION_LAYER_H_
#define RUBATO_WORKER_NN_ATTENTION_LAYER_H_

#include "worker/nn/layer.h"

namespace rubato {

// The part of attention between its linear layers: {positions, 3 * width} to {positions, width}.
absl::StatusOr<std::unique_ptr<Layer>> CreateAttentionLayer(const LayerSpec& spec, const LayerContext& context);

}  // namespace rubato

#endif  // RUBATO_WORKER_NN_ATTENTION_LAYER_H_
