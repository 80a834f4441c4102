#ifndef RUBATO_WORKER_NN_EMBEDDING_LAYER_H_
#define RUBATO_WORKER_NN_EMBEDDING_LAYER_H_

#include "worker/nn/layer.h"

namespace rubato {

// weight [vocabulary, width] and, unless there are none, positions [positions, width] in the place of a bias.
absl::StatusOr<std::unique_ptr<Layer>> CreateEmbeddingLayer(const LayerSpec& spec, const LayerContext& context,
                                                            const LayerParameters& parameters);

}  // namespace rubato

#endif  // RUBATO_WORKER_NN_EMBEDDING_LAYER_H_
