#include "common/status.h"
#include "worker/nn/layers/join_table.h"

namespace rubato::worker {
namespace {

// A part of a cross layer: y = x * factor, element by element.
class Product : public Join {
 public:
  Product(Backend* backend, const JoinOptions& options, DeviceTensor y, DeviceTensor gradient)
      : backend_(backend), options_(options), y_(std::move(y)), gradient_(std::move(gradient)) {}

  absl::StatusOr<DeviceTensor> Forward(const std::vector<DeviceTensor>& inputs) override {
    DeviceTensor y = y_.Rows(inputs[0].rows());
    RUBATO_RETURN_IF_ERROR(backend_->Multiply(inputs[0], inputs[1], false, y));
    return y;
  }

  absl::Status Backward(const std::vector<DeviceTensor>& inputs, const DeviceTensor& dy,
                        std::vector<DeviceTensor>* gradients) override {
    DeviceTensor &dx = (*gradients)[0], &dfactor = (*gradients)[1];
    if (options_.inputs[1].needs_gradient) {
      const bool begun = !dfactor.empty();
      if (!begun) dfactor = gradient_.Rows(dy.rows());
      RUBATO_RETURN_IF_ERROR(backend_->Multiply(dy, inputs[0], begun, dfactor));
    }
    // What is multiplied is a linear layer's output, which no other layer takes.
    dx = dy;
    return backend_->Multiply(dy, inputs[1], false, dx);
  }

 private:
  Backend* const backend_;
  const JoinOptions options_;
  const DeviceTensor y_;
  // Of the factor; none if it is not needed.
  const DeviceTensor gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Join>> CreateProduct(const LayerSpec& spec, const LayerContext& context,
                                                    const JoinOptions& options) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor gradient, AllocateJoinGradient(context, options.inputs[1]));
  return std::make_unique<Product>(context.backend, options, std::move(y), std::move(gradient));
}

}  // namespace rubato::worker
