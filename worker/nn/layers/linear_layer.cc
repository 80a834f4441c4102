#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// y = x weight^T + bias, over flattened inputs or over each position of a sequence.
class LinearLayer : public Layer {
 public:
  LinearLayer(Backend* backend, LayerParameters parameters, OperandWeight weight, DeviceTensor y, DeviceTensor dx)
      : backend_(backend),
        parameters_(std::move(parameters)),
        weight_(std::move(weight)),
        y_(std::move(y)),
        dx_(std::move(dx)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(weight_.Update());
    RUBATO_RETURN_IF_ERROR(
        backend_->Linear(AsRows(x, inputs()), weight_.tensor(), parameters_.bias, AsRows(y, units())));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    DeviceTensor dx = pass.input_gradient ? dx_.Rows(x.rows()) : DeviceTensor();
    RUBATO_RETURN_IF_ERROR(backend_->LinearBackward(AsRows(x, inputs()), weight_.tensor(), AsRows(dy, units()),
                                                    pass.accumulate, pass.input_gradient ? AsRows(dx, inputs()) : dx,
                                                    parameters_.weight_gradient, parameters_.bias_gradient));
    return dx;
  }

  bool keeps_output_gradient() const override { return true; }

 private:
  // The weight's shape says whether it works on whole examples or on each position of them.
  int64_t units() const { return parameters_.weight.rows(); }
  int64_t inputs() const { return parameters_.weight.columns(); }

  Backend* const backend_;
  const LayerParameters parameters_;
  const OperandWeight weight_;
  const DeviceTensor y_, dx_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateLinearLayer(const LayerSpec& spec, const LayerContext& context,
                                                         const LayerParameters& parameters) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor dx, AllocateInputGradient(spec, context));
  RUBATO_ASSIGN_OR_RETURN(OperandWeight weight, OperandWeight::Create(context.backend, parameters.weight));
  return std::make_unique<LinearLayer>(context.backend, parameters, std::move(weight), std::move(y), std::move(dx));
}

}  // namespace rubato::worker
