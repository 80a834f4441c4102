#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

// The part of attention between its linear layers: {positions, 3 * width} to {positions, width}.
class AttentionLayer : public Layer {
 public:
  AttentionLayer(Backend* backend, const AttentionGeometry& geometry, DeviceTensor y, DeviceTensor log_sum_exp,
                 DeviceTensor dx)
      : backend_(backend),
        geometry_(geometry),
        y_(std::move(y)),
        log_sum_exp_(std::move(log_sum_exp)),
        dx_(std::move(dx)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->CausalAttention(geometry_, x, y, log_sum_exp_.Rows(x.rows())));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor& y, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    if (!pass.input_gradient) return DeviceTensor();
    DeviceTensor dx = dx_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->CausalAttentionBackward(geometry_, x, y, log_sum_exp_.Rows(x.rows()), dy, dx));
    return dx;
  }

  bool keeps_output_gradient() const override { return true; }
  int64_t WorkspaceBytes(const WorkspaceRules& rules, int64_t batch) const override {
    return AttentionWorkspaceBytes(rules, geometry_, batch);
  }

 private:
  Backend* const backend_;
  const AttentionGeometry geometry_;
  const DeviceTensor y_, log_sum_exp_, dx_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateAttentionLayer(const LayerSpec& spec, const LayerContext& context,
                                                            const LayerParameters&) {
  const int64_t heads = spec.config.attention().heads();
  const AttentionGeometry geometry = {.sequence = spec.output[0], .heads = heads, .head_width = spec.output[1] / heads};
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor log_sum_exp,
                          context.backend->Allocate(geometry.LogSumExpShape(context.max_batch)));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor dx, AllocateInputGradient(spec, context));
  return std::make_unique<AttentionLayer>(context.backend, geometry, std::move(y), std::move(log_sum_exp),
                                          std::move(dx));
}

}  // namespace rubato::worker
