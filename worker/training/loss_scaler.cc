#include "worker/training/loss_scaler.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace rubato::worker {

v1::WorkerState LossScaler::state() const {
  v1::WorkerState state;
  state.set_loss_scale(scale_);
  state.set_loss_scale_steps(finite_steps_);
  return state;
}

absl::Status LossScaler::Restore(const v1::WorkerState& state) {
  const double scale = state.loss_scale();
  int exponent = 0;
  // Written so that NaN is refused too.
  if (!(scale >= 1 && scale <= kMaxScale) || std::frexp(scale, &exponent) != 0.5) {
    return absl::DataLossError(
        absl::StrCat("loss_scale: value ", scale, "; allowed: a power of two from 1 to ", kMaxScale));
  }
  if (state.loss_scale_steps() < 0) {
    return absl::DataLossError(
        absl::StrCat("loss_scale_steps: value ", state.loss_scale_steps(), "; allowed: 0 or more"));
  }
  scale_ = static_cast<float>(scale);
  finite_steps_ = state.loss_scale_steps();
  return absl::OkStatus();
}

bool LossScaler::OnFinite() {
  if (++finite_steps_ < growth_steps_) return false;
  finite_steps_ = 0;
  if (scale_ >= kMaxScale) return false;
  scale_ *= 2;
  return true;
}

bool LossScaler::OnOverflow() {
  if (scale_ <= 1) return false;
  scale_ /= 2;
  finite_steps_ = 0;
  ++overflows_;
  return true;
}

}  // namespace rubato::worker
