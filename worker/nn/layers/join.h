#ifndef RUBATO_WORKER_NN_LAYERS_JOIN_H_
#define RUBATO_WORKER_NN_LAYERS_JOIN_H_

#include <memory>
#include <vector>

#include "worker/nn/layers/layer.h"

namespace rubato::worker {

// A layer with several inputs: what residual, cross and branches layers end with (common/model_spec.h). Owned by a
// Model and used like a Layer.
class Join {
 public:
  virtual ~Join() = default;

  // Of its inputs [n, input...], in the order of JoinedLayers.
  virtual absl::StatusOr<DeviceTensor> Forward(const std::vector<DeviceTensor>& inputs) = 0;
  // `gradients` are by input the other terms of its gradient, as far as there are any, and then the sums with this
  // layer's; those that are not needed stay as they are. They may be views of dy, whose elements may be overwritten.
  virtual absl::Status Backward(const std::vector<DeviceTensor>& inputs, const DeviceTensor& dy,
                                std::vector<DeviceTensor>* gradients) = 0;
};

// An input of a join.
struct JoinInput {
  // Without the batch.
  Shape shape;
  bool needs_gradient = true;
};

// Whether a layer is a join, and the layers that are its inputs (or kModelInput), each once.
bool IsJoin(const LayerSpec& spec);
std::vector<int> JoinedLayers(const LayerSpec& spec);

struct JoinOptions {
  // Of JoinedLayers.
  std::vector<JoinInput> inputs;
  // Of a sum: dy is left as it is until nobody but the shortcut's layer needs it.
  bool shares_gradient = false;
};

// ResourceExhausted: the device has not enough memory.
absl::StatusOr<std::unique_ptr<Join>> CreateJoin(const LayerSpec& spec, const LayerContext& context,
                                                 const JoinOptions& options);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_NN_LAYERS_JOIN_H_
