#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// Products with a vector of ones: planes may have any shape.
class GlobalAveragePoolLayer : public Layer {
 public:
  GlobalAveragePoolLayer(Backend* backend, DeviceTensor ones, DeviceTensor y, DeviceTensor dx)
      : backend_(backend), ones_(std::move(ones)), y_(std::move(y)), dx_(std::move(dx)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(
        backend_->Gemm(false, true, 1 / static_cast<float>(plane()), AsRows(x, plane()), ones_, 0, AsRows(y, 1)));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    if (!pass.input_gradient) return DeviceTensor();
    DeviceTensor dx = dx_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(
        backend_->Gemm(false, false, 1 / static_cast<float>(plane()), AsRows(dy, 1), ones_, 0, AsRows(dx, plane())));
    return dx;
  }

  bool keeps_output_gradient() const override { return true; }

 private:
  int64_t plane() const { return ones_.elements(); }

  Backend* const backend_;
  const DeviceTensor ones_;  // [1, height * width]
  const DeviceTensor y_, dx_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateGlobalAveragePoolLayer(const LayerSpec& spec, const LayerContext& context,
                                                                    const LayerParameters&) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor ones, context.backend->Allocate({1, spec.input[1] * spec.input[2]},
                                                                       context.backend->ActivationType()));
  RUBATO_RETURN_IF_ERROR(context.backend->Fill(1, ones));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor dx, AllocateInputGradient(spec, context));
  return std::make_unique<GlobalAveragePoolLayer>(context.backend, std::move(ones), std::move(y), std::move(dx));
}

}  // namespace rubato::worker
