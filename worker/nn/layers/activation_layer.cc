#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// Its backward pass works in place, over dy.
class ActivationLayer : public Layer {
 public:
  ActivationLayer(Backend* backend, Activation activation, DeviceTensor y)
      : backend_(backend), activation_(activation), y_(std::move(y)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->Activate(activation_, x, y));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor& y, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    if (!pass.input_gradient) return DeviceTensor();
    RUBATO_RETURN_IF_ERROR(backend_->ActivateBackward(activation_, x, y, dy, dy));
    return dy;
  }

 private:
  Backend* const backend_;
  const Activation activation_;
  const DeviceTensor y_;
};

absl::StatusOr<std::unique_ptr<Layer>> Create(Activation activation, const LayerSpec& spec,
                                              const LayerContext& context) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  return std::make_unique<ActivationLayer>(context.backend, activation, std::move(y));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateReluLayer(const LayerSpec& spec, const LayerContext& context,
                                                       const LayerParameters&) {
  return Create(Activation::kRelu, spec, context);
}

absl::StatusOr<std::unique_ptr<Layer>> CreateTanhLayer(const LayerSpec& spec, const LayerContext& context,
                                                       const LayerParameters&) {
  return Create(Activation::kTanh, spec, context);
}

absl::StatusOr<std::unique_ptr<Layer>> CreateGeluLayer(const LayerSpec& spec, const LayerContext& context,
                                                       const LayerParameters&) {
  return Create(Activation::kGelu, spec, context);
}

}  // namespace rubato::worker
