#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// An operation on vectors of one width that are side by side, and its backward operation.
struct Interaction {
  absl::Status (Backend::*forward)(int64_t width, const DeviceTensor& x, const DeviceTensor& y);
  absl::Status (Backend::*backward)(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,
                                    const DeviceTensor& dx);
};

class InteractionLayer : public Layer {
 public:
  InteractionLayer(Backend* backend, const Interaction& interaction, int64_t width, DeviceTensor y, DeviceTensor dx)
      : backend_(backend), interaction_(interaction), width_(width), y_(std::move(y)), dx_(std::move(dx)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR((backend_->*interaction_.forward)(width_, x, y));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    if (!pass.input_gradient) return DeviceTensor();
    DeviceTensor dx = dx_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR((backend_->*interaction_.backward)(width_, x, dy, dx));
    return dx;
  }

  bool keeps_output_gradient() const override { return true; }

 private:
  Backend* const backend_;
  const Interaction interaction_;
  const int64_t width_;
  const DeviceTensor y_, dx_;
};

absl::StatusOr<std::unique_ptr<Layer>> Create(const Interaction& interaction, int64_t width, const LayerSpec& spec,
                                              const LayerContext& context) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor dx, AllocateInputGradient(spec, context));
  return std::make_unique<InteractionLayer>(context.backend, interaction, width, std::move(y), std::move(dx));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateDotInteractionLayer(const LayerSpec& spec, const LayerContext& context,
                                                                 const LayerParameters&) {
  return Create({&Backend::DotInteraction, &Backend::DotInteractionBackward}, spec.config.dot_interaction().width(),
                spec, context);
}

absl::StatusOr<std::unique_ptr<Layer>> CreateFactorizationMachineLayer(const LayerSpec& spec,
                                                                       const LayerContext& context,
                                                                       const LayerParameters&) {
  return Create({&Backend::FactorizationMachine, &Backend::FactorizationMachineBackward},
                spec.config.factorization_machine().width(), spec, context);
}

}  // namespace rubato::worker
