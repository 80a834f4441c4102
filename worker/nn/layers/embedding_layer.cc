#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// All elements as one row.
DeviceTensor Flat(const DeviceTensor& tensor) { return tensor.Reshaped({tensor.elements()}); }

// weight [vocabulary, width] and, unless there are none, positions [positions, width] in the place of a bias.
class EmbeddingLayer : public Layer {
 public:
  EmbeddingLayer(Backend* backend, LayerParameters parameters, DeviceTensor y)
      : backend_(backend), parameters_(std::move(parameters)), y_(std::move(y)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->Embed(parameters_.weight, x, y));
    // An example is a row to which all positions are added as a bias.
    if (!parameters_.bias.empty()) {
      RUBATO_RETURN_IF_ERROR(backend_->AddBias(Flat(parameters_.bias), AsRows(y, y.columns())));
    }
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    RUBATO_RETURN_IF_ERROR(backend_->EmbedBackward(x, dy, pass.accumulate, parameters_.weight_gradient));
    if (!parameters_.bias.empty()) {
      RUBATO_RETURN_IF_ERROR(
          backend_->BiasGradient(AsRows(dy, dy.columns()), pass.accumulate, Flat(parameters_.bias_gradient)));
    }
    return DeviceTensor();  // Tokens have no gradient.
  }

 private:
  Backend* const backend_;
  const LayerParameters parameters_;
  const DeviceTensor y_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateEmbeddingLayer(const LayerSpec& spec, const LayerContext& context,
                                                            const LayerParameters& parameters) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  return std::make_unique<EmbeddingLayer>(context.backend, parameters, std::move(y));
}

}  // namespace rubato::worker
