#include "worker/nn/pointwise_layers.h"

#include "common/random.h"
#include "common/status.h"

namespace rubato {
namespace {

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

class DropoutLayer : public Layer {
 public:
  DropoutLayer(Backend* backend, double rate, uint64_t seed, int position, DeviceTensor y)
      : backend_(backend), position_(position), y_(std::move(y)), mask_{.rate = rate, .seed = seed, .stream = 0} {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass& pass) override {
    drops_ = pass.training && mask_.rate > 0;
    if (!drops_) return x;
    mask_.stream = StreamId("dropout layer", pass.dropout_stream, position_);
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->Dropout(mask_, x, y));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor&, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    if (!pass.input_gradient) return DeviceTensor();
    if (drops_) RUBATO_RETURN_IF_ERROR(backend_->Dropout(mask_, dy, dy));
    return dy;
  }

  // Every pass has another mask.
  bool repeats() const override { return false; }

 private:
  Backend* const backend_;
  const int position_;
  const DeviceTensor y_;
  // Of the last forward pass.
  DropoutMask mask_;
  bool drops_ = false;
};

class FlattenLayer : public Layer {
 public:
  explicit FlattenLayer(const LayerSpec& spec) : input_(spec.input), output_(spec.output) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    return x.Reshaped(BatchShape(x.rows(), output_));
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor&, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    if (!pass.input_gradient) return DeviceTensor();
    return dy.Reshaped(BatchShape(dy.rows(), input_));
  }

 private:
  const Shape input_, output_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateActivationLayer(Activation activation, const LayerSpec& spec,
                                                             const LayerContext& context) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  return std::make_unique<ActivationLayer>(context.backend, activation, std::move(y));
}

absl::StatusOr<std::unique_ptr<Layer>> CreateDropoutLayer(const LayerSpec& spec, const LayerContext& context) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  return std::make_unique<DropoutLayer>(context.backend, spec.config.dropout().rate(), context.seed, context.position,
                                        std::move(y));
}

absl::StatusOr<std::unique_ptr<Layer>> CreateFlattenLayer(const LayerSpec& spec) {
  return std::make_unique<FlattenLayer>(spec);
}

}  // namespace rubato
