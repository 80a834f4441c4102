#ifndef RUBATO_WORKER_TRAINING_LOSS_SCALER_H_
#define RUBATO_WORKER_TRAINING_LOSS_SCALER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/checkpoint.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::worker {

// Dynamic loss scaling (Micikevicius et al. 2018, "Mixed precision training"): which power of two the gradient of the
// loss is multiplied by. It is halved when gradients overflow, and doubled after a number of steps without that, so it
// stays close to the largest one that the format bears. A pure state machine.
//
//   const float scale = scaler.scale();  // For the whole step.
//   if (finite) scaler.OnFinite(); else if (!scaler.OnOverflow()) ...;  // Not the scale's fault.
class LossScaler {
 public:
  static constexpr float kMaxScale = 0x1p24f;

  // Complete and valid (common/config).
  explicit LossScaler(const v1::LossScaleConfig& config)
      : scale_(static_cast<float>(config.initial())), growth_steps_(config.growth_steps()) {}

  // 1 to kMaxScale.
  float scale() const { return scale_; }
  // Steps that overflowed.
  int64_t overflows() const { return overflows_; }

  // What the next step depends on; and goes on from what an earlier one has kept. DataLoss: it is no power of two from
  // 1 to kMaxScale, or the steps are negative; nothing has changed.
  v1::WorkerState state() const;
  absl::Status Restore(const v1::WorkerState& state);

  // All gradients of a step are finite. True: the scale is larger from now on.
  bool OnFinite();
  // Some gradient of a step is not finite. False: the scale is 1 already, so the reason is another and nothing has
  // changed.
  bool OnOverflow();

 private:
  float scale_;
  const int64_t growth_steps_;
  // Steps without an overflow since the scale changed.
  int64_t finite_steps_ = 0;
  int64_t overflows_ = 0;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_LOSS_SCALER_H_
