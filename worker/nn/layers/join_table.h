#ifndef RUBATO_WORKER_NN_LAYERS_JOIN_TABLE_H_
#define RUBATO_WORKER_NN_LAYERS_JOIN_TABLE_H_

#include <memory>

#include "worker/nn/layers/join.h"

namespace rubato::worker {

// Makes a join of one kind, as CreateJoin does. Each is in a file of its own.
using JoinFactory = absl::StatusOr<std::unique_ptr<Join>>(const LayerSpec& spec, const LayerContext& context,
                                                          const JoinOptions& options);

JoinFactory CreateConcatenation;
JoinFactory CreateProduct;
JoinFactory CreateSum;

// Memory for the gradient of an input that other layers have not begun; none if it is not needed.
absl::StatusOr<DeviceTensor> AllocateJoinGradient(const LayerContext& context, const JoinInput& input);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_NN_LAYERS_JOIN_TABLE_H_
