#include "common/random.h"
#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// Passes its input on outside training. Its backward pass works in place, over dy.
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

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateDropoutLayer(const LayerSpec& spec, const LayerContext& context,
                                                          const LayerParameters&) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  return std::make_unique<DropoutLayer>(context.backend, spec.config.dropout().rate(), context.seed, context.position,
                                        std::move(y));
}

}  // namespace rubato::worker
