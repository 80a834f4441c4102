#ifndef RUBATO_KERNELS_OPTIMIZER_UPDATE_LOOPS_H_
#define RUBATO_KERNELS_OPTIMIZER_UPDATE_LOOPS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/optimizer/isa.h"
#include "kernels/optimizer/reduce_and_apply.h"

// The loops of reduce_and_apply.cc, inlined once into a function for each instruction set. All work on one block whose
// gradient `g` and weights `w` are in the first-level cache.

namespace rubato::update_loops {

// 4 KiB of floats: gradient, weights and slots of a block stay in the first-level cache together.
inline constexpr int64_t kBlock = 1024;

// A float in a received message, which may start at any byte.
using UnalignedFloat = float __attribute__((aligned(1), may_alias));

RUBATO_KERNEL_BODY void Reduce(const GradientSpan* contributions, int count, int64_t offset, int n,
                               float* __restrict g) {
  if (count == 0) std::memset(g, 0, sizeof(float) * n);
  for (int k = 0; k < count; ++k) {
    const UnalignedFloat* __restrict data = static_cast<const UnalignedFloat*>(contributions[k].data) + offset;
    const float weight = contributions[k].weight;
    if (k == 0) {
      for (int i = 0; i < n; ++i) g[i] = weight * data[i];
    } else {
      for (int i = 0; i < n; ++i) g[i] += weight * data[i];
    }
  }
}

RUBATO_KERNEL_BODY void Sgd(const UpdateRule& rule, const float* __restrict g, float* __restrict w, int n) {
  const float learning_rate = rule.learning_rate;
  for (int i = 0; i < n; ++i) w[i] -= learning_rate * g[i];
}

RUBATO_KERNEL_BODY void Momentum(const UpdateRule& rule, const float* __restrict g, float* __restrict w,
                                 float* __restrict v, int n) {
  const float learning_rate = rule.learning_rate, mu = rule.momentum;
  for (int i = 0; i < n; ++i) {
    v[i] = mu * v[i] + g[i];
    w[i] -= learning_rate * v[i];
  }
}

RUBATO_KERNEL_BODY void Nesterov(const UpdateRule& rule, const float* __restrict g, float* __restrict w,
                                 float* __restrict v, int n) {
  const float learning_rate = rule.learning_rate, mu = rule.momentum;
  for (int i = 0; i < n; ++i) {
    v[i] = mu * v[i] + g[i];
    w[i] -= learning_rate * (g[i] + mu * v[i]);
  }
}

RUBATO_KERNEL_BODY void AdaGrad(const UpdateRule& rule, const float* __restrict g, float* __restrict w,
                                float* __restrict a, int n) {
  const float learning_rate = rule.learning_rate, epsilon = rule.epsilon;
  for (int i = 0; i < n; ++i) {
    a[i] += g[i] * g[i];
    w[i] -= learning_rate * g[i] / (std::sqrt(a[i]) + epsilon);
  }
}

RUBATO_KERNEL_BODY void RmsProp(const UpdateRule& rule, const float* __restrict g, float* __restrict w,
                                float* __restrict a, int n) {
  const float learning_rate = rule.learning_rate, epsilon = rule.epsilon;
  const float rho = rule.beta2, complement = rule.beta2_complement;
  for (int i = 0; i < n; ++i) {
    a[i] = rho * a[i] + complement * (g[i] * g[i]);
    w[i] -= learning_rate * g[i] / (std::sqrt(a[i]) + epsilon);
  }
}

RUBATO_KERNEL_BODY void Adam(const UpdateRule& rule, const float* __restrict g, float* __restrict w,
                             float* __restrict m, float* __restrict v, int n) {
  const float learning_rate = rule.learning_rate, epsilon = rule.epsilon, scale = rule.second_moment_scale;
  const float beta1 = rule.beta1, complement1 = rule.beta1_complement;
  const float beta2 = rule.beta2, complement2 = rule.beta2_complement;
  for (int i = 0; i < n; ++i) {
    m[i] = beta1 * m[i] + complement1 * g[i];
    v[i] = beta2 * v[i] + complement2 * (g[i] * g[i]);
    w[i] -= learning_rate * m[i] / (std::sqrt(v[i]) * scale + epsilon);
  }
}

// One block: weight decay, then the algorithm.
RUBATO_KERNEL_BODY void ApplyBlock(const UpdateRule& rule, float* __restrict g, float* __restrict w,
                                   float* const* slots, int64_t offset, int n) {
  if (rule.l2 != 0) {
    for (int i = 0; i < n; ++i) g[i] += rule.l2 * w[i];
  }
  if (rule.shrink != 1) {
    for (int i = 0; i < n; ++i) w[i] *= rule.shrink;
  }
  switch (rule.algorithm) {
    case v1::OptimizerConfig::MOMENTUM:
      return Momentum(rule, g, w, slots[0] + offset, n);
    case v1::OptimizerConfig::NESTEROV:
      return Nesterov(rule, g, w, slots[0] + offset, n);
    case v1::OptimizerConfig::ADAGRAD:
      return AdaGrad(rule, g, w, slots[0] + offset, n);
    case v1::OptimizerConfig::RMSPROP:
      return RmsProp(rule, g, w, slots[0] + offset, n);
    case v1::OptimizerConfig::ADAM:
    case v1::OptimizerConfig::ADAMW:
      return Adam(rule, g, w, slots[0] + offset, slots[1] + offset, n);
    default:
      return Sgd(rule, g, w, n);
  }
}

RUBATO_KERNEL_BODY void Run(const UpdateRule& rule, const GradientSpan* contributions, int count,
                            const float* weights_in, float* weights_out, float* const* slots, int64_t n) {
  alignas(64) float g[kBlock];
  for (int64_t offset = 0; offset < n; offset += kBlock) {
    const int length = static_cast<int>(std::min(kBlock, n - offset));
    Reduce(contributions, count, offset, length, g);
    // The loops work in place: with in and out as two pointers they could not be vectorised where both are equal.
    if (weights_in != weights_out) std::memcpy(weights_out + offset, weights_in + offset, sizeof(float) * length);
    ApplyBlock(rule, g, weights_out + offset, slots, offset, length);
  }
}

}  // namespace rubato::update_loops

#endif  // RUBATO_KERNELS_OPTIMIZER_UPDATE_LOOPS_H_
