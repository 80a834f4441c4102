#include "common/status.h"
#include "worker/nn/layers/layer_table.h"

namespace rubato::worker {
namespace {

class GroupNormLayer : public Layer {
 public:
  GroupNormLayer(Backend* backend, const v1::GroupNormLayer& config, LayerParameters parameters, DeviceTensor y,
                 DeviceTensor mean, DeviceTensor inverse_deviation)
      : backend_(backend),
        groups_(config.groups()),
        epsilon_(static_cast<float>(config.epsilon())),
        parameters_(std::move(parameters)),
        y_(std::move(y)),
        mean_(std::move(mean)),
        inverse_deviation_(std::move(inverse_deviation)) {}

  absl::StatusOr<DeviceTensor> Forward(const DeviceTensor& x, const ForwardPass&) override {
    DeviceTensor y = y_.Rows(x.rows());
    RUBATO_RETURN_IF_ERROR(backend_->GroupNorm(groups_, epsilon_, x, parameters_.weight, parameters_.bias, y,
                                               mean_.Rows(x.rows()), inverse_deviation_.Rows(x.rows())));
    return y;
  }

  absl::StatusOr<DeviceTensor> Backward(const DeviceTensor& x, const DeviceTensor&, const DeviceTensor& dy,
                                        const BackwardPass& pass) override {
    DeviceTensor dx = pass.input_gradient ? dy : DeviceTensor();
    RUBATO_RETURN_IF_ERROR(backend_->GroupNormBackward(groups_, x, parameters_.weight, mean_.Rows(x.rows()),
                                                       inverse_deviation_.Rows(x.rows()), dy, pass.accumulate, dx,
                                                       parameters_.weight_gradient, parameters_.bias_gradient));
    return dx;
  }

 private:
  Backend* const backend_;
  const int64_t groups_;
  const float epsilon_;
  const LayerParameters parameters_;
  const DeviceTensor y_, mean_, inverse_deviation_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> CreateGroupNormLayer(const LayerSpec& spec, const LayerContext& context,
                                                            const LayerParameters& parameters) {
  Backend* backend = context.backend;
  const v1::GroupNormLayer& config = spec.config.group_norm();
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor mean, backend->Allocate({context.max_batch, config.groups()}));
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor inverse_deviation, backend->Allocate({context.max_batch, config.groups()}));
  return std::make_unique<GroupNormLayer>(backend, config, parameters, std::move(y), std::move(mean),
                                          std::move(inverse_deviation));
}

}  // namespace rubato::worker
