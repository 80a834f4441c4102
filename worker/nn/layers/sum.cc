#include "common/status.h"
#include "worker/nn/layers/join_table.h"

namespace rubato::worker {
namespace {

// The end of a residual block: y = x + shortcut.
class Sum : public Join {
 public:
  Sum(Backend* backend, const JoinOptions& options, DeviceTensor y, DeviceTensor gradient)
      : backend_(backend), options_(options), y_(std::move(y)), gradient_(std::move(gradient)) {}

  absl::StatusOr<DeviceTensor> Forward(const std::vector<DeviceTensor>& inputs) override {
    DeviceTensor y = y_.Rows(inputs[0].rows());
    RUBATO_RETURN_IF_ERROR(backend_->Add(inputs[0], inputs[1], y));
    return y;
  }

  absl::Status Backward(const std::vector<DeviceTensor>&, const DeviceTensor& dy,
                        std::vector<DeviceTensor>* gradients) override {
    DeviceTensor &dx = (*gradients)[0], &dshortcut = (*gradients)[1];
    if (options_.inputs[1].needs_gradient) {
      if (!dshortcut.empty()) {
        RUBATO_RETURN_IF_ERROR(backend_->Axpy(1, dy, dshortcut));
      } else if (options_.shares_gradient) {
        dshortcut = dy;
      } else {
        // dy itself is the gradient of x, and may be overwritten.
        dshortcut = gradient_.Rows(dy.rows());
        RUBATO_RETURN_IF_ERROR(backend_->Copy(dy, dshortcut));
      }
    }
    // x is the end of the block, which no other layer takes.
    dx = dy;
    return absl::OkStatus();
  }

 private:
  Backend* const backend_;
  const JoinOptions options_;
  const DeviceTensor y_;
  // Of the shortcut; none if it is shared or not needed.
  const DeviceTensor gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Join>> CreateSum(const LayerSpec& spec, const LayerContext& context,
                                                const JoinOptions& options) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  DeviceTensor gradient;
  if (!options.shares_gradient) {
    RUBATO_ASSIGN_OR_RETURN(gradient, AllocateJoinGradient(context, options.inputs[1]));
  }
  return std::make_unique<Sum>(context.backend, options, std::move(y), std::move(gradient));
}

}  // namespace rubato::worker
