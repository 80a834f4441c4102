#ifndef RUBATO_WORKER_NN_LAYERS_LAYER_H_
#define RUBATO_WORKER_NN_LAYERS_LAYER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "kernels/backend.h"
#include "kernels/workspace.h"

namespace rubato::worker {

struct ForwardPass {
  // Of Layer::parts().
  int part = 0;
  // Dropout drops; the backward pass follows the last forward pass.
  bool training = false;
  // Names the dropout masks; another one in each step of each worker.
  uint64_t dropout_stream = 0;
};

struct BackwardPass {
  // Of Layer::parts().
  int part = 0;
  // Adds to the parameter gradients instead of replacing them.
  bool accumulate = false;
  // Whether the gradient of the input is needed.
  bool input_gradient = true;
  // Whether those of the parameters are. If not, of a layer with several parts, one call is all; another pass gives
  // them later, without the gradient of the input.
  bool parameter_gradients = true;
  // Other terms of that gradient; empty if there are none so far, or the layer does not add to them.
  DeviceTensor input_gradient_sum;
};

// A layer's parameters in the order of LayerSpec::tensors, and their gradients. Empty if there is none.
struct LayerParameters {
  DeviceTensor weight, bias;
  DeviceTensor weight_gradient, bias_gradient;
};

// One layer of a model, with the memory for its outputs and for the gradient of its inputs. Made for a largest batch;
// each pass may use a smaller one. Owned by a Model and used by one thread at a time. Methods return the statuses of
// Backend's operations.
class Layer {
 public:
  virtual ~Layer() = default;

  // x [n, input...] (int32 if it is tokens) to y [n, output...]. y stays as it is until the next call, and may be a
  // view of x.
  virtual absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass& pass) = 0;
  // Writes the parameter gradients of the last forward pass, whose input and output are x and y, and returns dx, or an
  // empty tensor if it is not needed. dx may be a view of dy, whose elements may be overwritten. If there are
  // other terms of dx in the pass, they are returned with the layer's added.
  virtual absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor& y, const DeviceTensor& dy,
                                                const BackwardPass& pass) = 0;
  // How many parts its passes are made in, each a call, in order; what the last one returns is what the others would. A
  // part needs of the layer's first tensor, and has written of its gradient, PartEnd elements from the beginning; of
  // other tensors everything. The weights of a part's gradient are not read any more.
  virtual int parts() const { return 1; }
  // Called for layers with parts only.
  virtual int64_t PartEnd(int /*part*/) const { return 0; }
  // Whether Backward leaves dy as it is, and does not return it either.
  virtual bool keeps_output_gradient() const { return false; }
  // Whether Backward adds to a pass's input_gradient_sum.
  virtual bool adds_input_gradient() const { return false; }
  // Whether all passes over the same tensors are the same operations with the same numbers.
  virtual bool repeats() const { return true; }
  // What its operations take for themselves at a time, for a batch of so many examples. Layers that use Conv2d or
  // CausalAttention have such operations (kernels/workspace.h).
  virtual int64_t WorkspaceBytes(const WorkspaceRules&, int64_t) const { return 0; }
};

// What a layer is made from. The backend outlives the layer.
struct LayerContext {
  Backend* backend = nullptr;
  int64_t max_batch = 0;
  // Of dropout masks; with the layer's position they are different in each layer.
  uint64_t seed = 0;
  int position = 0;
};

// Not for joins (join.h). ResourceExhausted: the device has not enough memory. Internal: the spec
// was not made by BuildModelSpec.
absl::StatusOr<std::unique_ptr<Layer>> CreateLayer(const LayerSpec& spec, const LayerContext& context,
                                                   const LayerParameters& parameters);

// `shape` for a batch of n examples.
Shape BatchShape(int64_t n, const Shape& shape);
// A tensor [n, ..., width] as a matrix of rows of `width`.
DeviceTensor AsRows(const DeviceTensor& tensor, int64_t width);
// Memory for activations of the largest batch: a layer's y, and its dx. No dx if it is not needed.
absl::StatusOr<DeviceTensor> AllocateOutput(const LayerSpec& spec, const LayerContext& context);
absl::StatusOr<DeviceTensor> AllocateInputGradient(const LayerSpec& spec, const LayerContext& context);

// A weight as products take it: itself, or if activations have another type a copy that each forward pass makes.
class OperandWeight {
 public:
  // Errors of Backend::Allocate.
  static absl::StatusOr<OperandWeight> Create(Backend* backend, const DeviceTensor& weight);

  // Takes the weight as it is now. Errors of Backend::Copy.
  absl::Status Update() const;
  // As it was when it was last updated.
  const DeviceTensor& tensor() const { return operand_; }

 private:
  OperandWeight(Backend* backend, DeviceTensor weight, DeviceTensor operand)
      : backend_(backend), weight_(std::move(weight)), operand_(std::move(operand)) {}

  Backend* backend_;
  DeviceTensor weight_, operand_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_NN_LAYERS_LAYER_H_
