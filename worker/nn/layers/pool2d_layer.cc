#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

Pool2dGeometry Geometry(const LayerSpec& spec, const v1::Pool2dLayer& config) {
  return {.channels = spec.input[0],
          .height = spec.input[1],
          .width = spec.input[2],
          .window = config.window(),
          .stride = config.stride()};
}

class MaxPool2dLayer : public Layer {
 public:
  MaxPool2dLayer(Backend* backend, const Pool2dGeometry& geometry, DeviceTensor y, DeviceTensor argmax, DeviceTensor dx)
      : backend_(backend), geometry_(geometry), y_(std::move(y)), argmax_(std::move(argmax)), dx_(std::move(dx)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->MaxPool2d(geometry_, x, y, argmax_.Rows(x.rows())));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    if (!pass.input_gradient) return DeviceTensor();
    DeviceTensor dx = dx_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->MaxPool2dBackward(geometry_, dy, argmax_.Rows(x.rows()), dx));
    return dx;
  }

 private:
  Backend* const backend_;
  const Pool2dGeometry geometry_;
  const DeviceTensor y_, argmax_, dx_;
};

class AveragePool2dLayer : public Layer {
 public:
  AveragePool2dLayer(Backend* backend, const Pool2dGeometry& geometry, DeviceTensor y, DeviceTensor dx)
      : backend_(backend), geometry_(geometry), y_(std::move(y)), dx_(std::move(dx)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->AveragePool2d(geometry_, x, y));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    if (!pass.input_gradient) return DeviceTensor();
    DeviceTensor dx = dx_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->AveragePool2dBackward(geometry_, dy, dx));
    return dx;
  }

 private:
  Backend* const backend_;
  const Pool2dGeometry geometry_;
  const DeviceTensor y_, dx_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateMaxPool2dLayer(const LayerSpec& spec, const LayerContext& context,
                                                            const LayerParameters&) {
  const Shape output = BatchShape(context.max_batch, spec.output);
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor argmax, context.backend->Allocate(output, ElementType::kInt32));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor dx, AllocateInputGradient(spec, context));
  return std::make_unique<MaxPool2dLayer>(context.backend, Geometry(spec, spec.config.max_pool2d()), std::move(y),
                                          std::move(argmax), std::move(dx));
}

absl::StatusOr<std::unique_ptr<Layer>> CreateAveragePool2dLayer(const LayerSpec& spec, const LayerContext& context,
                                                                const LayerParameters&) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor dx, AllocateInputGradient(spec, context));
  return std::make_unique<AveragePool2dLayer>(context.backend, Geometry(spec, spec.config.average_pool2d()),
                                              std::move(y), std::move(dx));
}

}  // namespace rubato::worker
