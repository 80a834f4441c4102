#include "worker/training/loss_scaler.h"

namespace rubato::worker {

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
