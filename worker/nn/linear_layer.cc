#include "worker/nn/linear_layer.h"

#include "common/status.h"

namespace rubato {
namespace {

class LinearLayer : public Layer {
 public:
  LinearLayer(Backend* backend, LayerParameters parameters, DeviceTensor y, DeviceTensor dx)
      : backend_(backend), parameters_(std::move(parameters)), y_(std::move(y)), dx_(std::move(dx)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    const DeviceTensor rows = AsRows(y, units());
    RUBATO_RETURN_IF_ERROR(backend_->Gemm(false, true, 1, AsRows(x, inputs()), parameters_.weight, 0, rows));
    if (!parameters_.bias.empty()) RUBATO_RETURN_IF_ERROR(backend_->AddBias(parameters_.bias, rows));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    const float beta = pass.accumulate ? 1 : 0;
    const DeviceTensor dy_rows = AsRows(dy, units());
    RUBATO_RETURN_IF_ERROR(
        backend_->Gemm(true, false, 1, dy_rows, AsRows(x, inputs()), beta, parameters_.weight_gradient));
    if (!parameters_.bias.empty()) {
      RUBATO_RETURN_IF_ERROR(backend_->BiasGradient(dy_rows, pass.accumulate, parameters_.bias_gradient));
    }
    if (!pass.input_gradient) return DeviceTensor();
    DeviceTensor dx = dx_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->Gemm(false, false, 1, dy_rows, parameters_.weight, 0, AsRows(dx, inputs())));
    return dx;
  }

 private:
  // The weight's shape says whether it works on whole examples or on each position of them.
  int64_t units() const { return parameters_.weight.rows(); }
  int64_t inputs() const { return parameters_.weight.columns(); }

  Backend* const backend_;
  const LayerParameters parameters_;
  const DeviceTensor y_, dx_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateLinearLayer(const LayerSpec& spec, const LayerContext& context,
                                                         const LayerParameters& parameters) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, context.backend->Allocate(BatchShape(context.max_batch, spec.output)));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor dx, AllocateInputGradient(spec, context));
  return std::make_unique<LinearLayer>(context.backend, parameters, std::move(y), std::move(dx));
}

}  // namespace rubato
