#include "worker/nn/layers/residual_sum.h"

#include "common/status.h"

namespace rubato::worker {

absl::StatusOr<std::unique_ptr<ResidualSum>> ResidualSum::Create(const LayerSpec& spec, const LayerContext& context,
                                                                 bool shares_gradient) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor y, AllocateOutput(spec, context));
  DeviceTensor gradient;
  shares_gradient = shares_gradient && spec.shortcut != kModelInput;
  if (spec.shortcut != kModelInput && !shares_gradient) {
    RUBATO_ASSIGN_OR_RETURN(gradient, AllocateOutput(spec, context));
  }
  return std::unique_ptr<ResidualSum>(
      new ResidualSum(context.backend, shares_gradient, std::move(y), std::move(gradient)));
}

absl::StatusOr<DeviceTensor> ResidualSum::Forward(const DeviceTensor& x, const DeviceTensor& shortcut) {
  DeviceTensor y = y_.Rows(x.rows());
  RUBATO_RETURN_IF_ERROR(backend_->Add(x, shortcut, y));
  return y;
}

absl::StatusOr<DeviceTensor> ResidualSum::ShortcutGradient(const DeviceTensor& dy) {
  if (shares_gradient_) return dy;
  if (gradient_.empty()) return DeviceTensor();
  DeviceTensor gradient = gradient_.Rows(dy.rows());
  RUBATO_RETURN_IF_ERROR(backend_->Copy(dy, gradient));
  return gradient;
}

}  // namespace rubato::worker
