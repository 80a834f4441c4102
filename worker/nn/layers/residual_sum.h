#ifndef RUBATO_WORKER_NN_LAYERS_RESIDUAL_SUM_H_
#define RUBATO_WORKER_NN_LAYERS_RESIDUAL_SUM_H_

#include <memory>

#include "worker/nn/layers/layer.h"

namespace rubato::worker {

// The end of a residual block, the one kind of layer with two inputs: y = x + shortcut. Owned by a Model, as a Layer.
class ResidualSum {
 public:
  // `shares_gradient`: dy is left as it is until nobody but the shortcut's layer needs it. ResourceExhausted: the
  // device has not enough memory.
  static absl::StatusOr<std::unique_ptr<ResidualSum>> Create(const LayerSpec& spec, const LayerContext& context,
                                                             bool shares_gradient);

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const DeviceTensor& shortcut);
  // The gradient of the shortcut: dy if that is shared, or a copy, because dy itself is the gradient of x and may be
  // overwritten. Empty if the shortcut is the model's input.
  absl::StatusOr<DeviceTensor> ShortcutGradient(const DeviceTensor& dy);

 private:
  ResidualSum(Backend* backend, bool shares_gradient, DeviceTensor y, DeviceTensor gradient)
      : backend_(backend), shares_gradient_(shares_gradient), y_(std::move(y)), gradient_(std::move(gradient)) {}

  Backend* const backend_;
  const bool shares_gradient_;
  const DeviceTensor y_, gradient_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_NN_LAYERS_RESIDUAL_SUM_H_
