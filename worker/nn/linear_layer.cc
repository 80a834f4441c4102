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
    RUBATO_RETURN_IF_ERROR(backend_->Gemm(false, true, 1, x, parameters_.weight, 0, y));
    if (!parameters_.bias.empty()) RUBATO_RETURN_IF_ERROR(backend_->AddBias(parameters_.bias, y));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    const float beta = pass.accumulate ? 1 : 0;
    RUBATO_RETURN_IF_ERROR(backend_->Gemm(true, false, 1, dy, x, beta, parameters_.weight_gradient));
    if (!parameters_.bias.empty()) {
      RUBATO_RETURN_IF_ERROR(backend_->BiasGradient(dy, pass.accumulate, parameters_.bias_gradient));
    }
    if (!pass.input_gradient) return DeviceTensor();
    DeviceTensor dx = dx_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->Gemm(false, false, 1, dy, parameters_.weight, 0, dx));
    return dx;
  }

 private:
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
