#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// The same elements as a vector.
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

absl::StatusOr<std::unique_ptr<Layer>> CreateFlattenLayer(const LayerSpec& spec, const LayerContext&,
                                                          const LayerParameters&) {
  return std::make_unique<FlattenLayer>(spec);
}

}  // namespace rubato::worker
