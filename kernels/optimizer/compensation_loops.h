#ifndef RUBATO_KERNELS_OPTIMIZER_COMPENSATION_LOOPS_H_
#define RUBATO_KERNELS_OPTIMIZER_COMPENSATION_LOOPS_H_

#include <math.h>

#include "kernels/optimizer/isa.h"
#include "kernels/optimizer/update_formula.h"

// The loops that compensate one block of gradients `g` for their staleness, inlined into a function for each
// instruction set. `w` are the weights that they are applied to, `pulled` those that they were computed from.

namespace rubato::compensation_loops {

// DC-ASGD-a: how the mean square of gradients decays, and what is added to it.
inline constexpr double kSquareDecay = 0.95;
inline constexpr float kSquareFloor = 1e-7f;
// Gap-aware: how the mean square of moves decays.
inline constexpr double kMoveDecay = 0.999;

RUBATO_KERNEL_BODY void CompensateDelay(float lambda, const float* __restrict w, const float* __restrict pulled,
                                        float* __restrict g, int n) {
  for (int i = 0; i < n; ++i) g[i] += lambda * (g[i] * g[i]) * (w[i] - pulled[i]);
}

RUBATO_KERNEL_BODY void CompensateDelayAdaptively(float lambda, const float* __restrict w,
                                                  const float* __restrict pulled, float* __restrict mean_square,
                                                  float* __restrict g, int n) {
  constexpr auto kDecay = static_cast<float>(kSquareDecay), kComplement = static_cast<float>(1 - kSquareDecay);
  for (int i = 0; i < n; ++i) {
    const float square = g[i] * g[i];
    const float mean = kDecay * mean_square[i] + kComplement * square;
    mean_square[i] = mean;
    g[i] += lambda / sqrtf(mean + kSquareFloor) * square * (w[i] - pulled[i]);
  }
}

// A weight that has not moved yet has no gap: all that it was computed from was the same.
RUBATO_KERNEL_BODY void DivideByGap(float move_scale, const float* __restrict w, const float* __restrict pulled,
                                    const float* __restrict mean_square, float* __restrict g, int n) {
  for (int i = 0; i < n; ++i) {
    const float move = move_scale * sqrtf(mean_square[i]);
    const float gap = fabsf(w[i] - pulled[i]);
    g[i] /= 1.0f + (move > 0 ? gap / move : 0.0f);
  }
}

// The mean square of moves after one from `w` to `moved`.
RUBATO_KERNEL_BODY void AverageMoves(const float* __restrict w, const float* __restrict moved,
                                     float* __restrict mean_square, int n) {
  constexpr auto kDecay = static_cast<float>(kMoveDecay), kComplement = static_cast<float>(1 - kMoveDecay);
  for (int i = 0; i < n; ++i) {
    const float move = moved[i] - w[i];
    mean_square[i] = kDecay * mean_square[i] + kComplement * (move * move);
  }
}

// A push of delayed Nesterov, which is the whole update: `sum` is of the gradients of this period, `share` 1 / N.
template <bool kEndsPeriod>
RUBATO_KERNEL_BODY void ApplyDelayedNesterov(const UpdateRule& rule, float share, const float* __restrict g,
                                             const float* __restrict w, float* __restrict moved,
                                             float* __restrict momentum, float* __restrict sum, int n) {
  const float rate = rule.learning_rate, decay = rule.momentum;
  for (int i = 0; i < n; ++i) {
    const float total = sum[i] + g[i];
    float step = share * g[i];
    if constexpr (kEndsPeriod) {
      momentum[i] = decay * momentum[i] + share * total;
      step += decay * momentum[i];
    }
    sum[i] = kEndsPeriod ? 0.0f : total;
    moved[i] = w[i] - rate * step;
  }
}

}  // namespace rubato::compensation_loops

#endif  // RUBATO_KERNELS_OPTIMIZER_COMPENSATION_LOOPS_H_
