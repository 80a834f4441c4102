#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// Normalises each position of a sequence, or each example over all of its elements.
class LayerNormLayer : public Layer {
 public:
  LayerNormLayer(Backend* backend, float epsilon, LayerParameters parameters, DeviceTensor y, DeviceTensor mean,
                 DeviceTensor inverse_deviation)
      : backend_(backend),
        epsilon_(epsilon),
        parameters_(std::move(parameters)),
        y_(std::move(y)),
        mean_(std::move(mean)),
        inverse_deviation_(std::move(inverse_deviation)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    const DeviceTensor rows = Normalised(x);
    RUBATO_RETURN_IF_ERROR(backend_->LayerNorm(epsilon_, rows, parameters_.weight, parameters_.bias, Normalised(y),
                                               mean_.Rows(rows.rows()), inverse_deviation_.Rows(rows.rows())));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    const DeviceTensor rows = Normalised(x);
    const bool adds = !pass.input_gradient_sum.empty();
    const DeviceTensor dx = !pass.input_gradient ? DeviceTensor() : adds ? pass.input_gradient_sum : dy;
    RUBATO_RETURN_IF_ERROR(backend_->LayerNormBackward(rows, parameters_.weight, mean_.Rows(rows.rows()),
                                                       inverse_deviation_.Rows(rows.rows()), Normalised(dy),
                                                       pass.accumulate, adds, dx.empty() ? dx : Normalised(dx),
                                                       parameters_.weight_gradient, parameters_.bias_gradient));
    return dx;
  }

  bool adds_input_gradient() const override { return true; }

 private:
  // With what is normalised together in a row: an example, or a position of one.
  DeviceTensor Normalised(const DeviceTensor& tensor) const {
    Shape shape = parameters_.weight.shape();
    shape.insert(shape.begin(), tensor.elements() / parameters_.weight.elements());
    return tensor.Reshaped(std::move(shape));
  }

  Backend* const backend_;
  const float epsilon_;
  const LayerParameters parameters_;
  const DeviceTensor y_, mean_, inverse_deviation_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateLayerNormLayer(const LayerSpec& spec, const LayerContext& context,
                                                            const LayerParameters& parameters) {
  Backend* backend = context.backend;
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  const int64_t rows = y.elements() / parameters.weight.elements();
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor mean, backend->Allocate({rows}));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor inverse_deviation, backend->Allocate({rows}));
  return std::make_unique<LayerNormLayer>(backend, static_cast<float>(spec.config.layer_norm().epsilon()), parameters,
                                          std::move(y), std::move(mean), std::move(inverse_deviation));
}

}  // namespace rubato::worker
