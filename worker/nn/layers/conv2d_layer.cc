#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// Cross-correlation in NCHW order, with a bias per filter.
class Conv2dLayer : public Layer {
 public:
  Conv2dLayer(Backend* backend, const Conv2dGeometry& geometry, LayerParameters parameters, OperandWeight weight,
              DeviceTensor y, DeviceTensor dx)
      : backend_(backend),
        geometry_(geometry),
        parameters_(std::move(parameters)),
        weight_(std::move(weight)),
        y_(std::move(y)),
        dx_(std::move(dx)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(weight_.Update());
    RUBATO_RETURN_IF_ERROR(backend_->Conv2d(geometry_, x, weight_.tensor(), y));
    if (!parameters_.bias.empty()) RUBATO_RETURN_IF_ERROR(backend_->AddBias(parameters_.bias, y));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    RUBATO_RETURN_IF_ERROR(
        backend_->Conv2dBackwardWeight(geometry_, x, dy, pass.accumulate, parameters_.weight_gradient));
    if (!parameters_.bias.empty()) {
      RUBATO_RETURN_IF_ERROR(backend_->BiasGradient(dy, pass.accumulate, parameters_.bias_gradient));
    }
    if (!pass.input_gradient) return DeviceTensor();
    DeviceTensor dx = dx_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->Conv2dBackwardData(geometry_, dy, weight_.tensor(), dx));
    return dx;
  }

  bool keeps_output_gradient() const override { return true; }
  int64_t WorkspaceBytes(const WorkspaceRules& rules, int64_t batch) const override {
    return Conv2dWorkspaceBytes(rules, geometry_, batch);
  }

 private:
  Backend* const backend_;
  const Conv2dGeometry geometry_;
  const LayerParameters parameters_;
  const OperandWeight weight_;
  const DeviceTensor y_, dx_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateConv2dLayer(const LayerSpec& spec, const LayerContext& context,
                                                         const LayerParameters& parameters) {
  const v1::Conv2dLayer& config = spec.config.conv2d();
  const Conv2dGeometry geometry = {.channels = spec.input[0],
                                   .height = spec.input[1],
                                   .width = spec.input[2],
                                   .filters = config.filters(),
                                   .kernel = config.kernel(),
                                   .stride = config.stride(),
                                   .padding = config.padding()};
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor dx, AllocateInputGradient(spec, context));
  RUBATO_ASSIGN_OR_RETURN(OperandWeight weight, OperandWeight::Create(context.backend, parameters.weight));
  return std::make_unique<Conv2dLayer>(context.backend, geometry, parameters, std::move(weight), std::move(y),
                                       std::move(dx));
}

}  // namespace rubato::worker
