#ifndef RUBATO_KERNELS_OPTIMIZER_UPDATE_LOOPS_H_
#define RUBATO_KERNELS_OPTIMIZER_UPDATE_LOOPS_H_

#include <cmath>
#include <cstdint>

#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/isa.h"
#include "kernels/optimizer/update_rule.h"

// The optimizers' loops over one block of gradients `g`, inlined into a function for each instruction set. Weights are
// read from `w_in` and written to `w`; with kInPlace they are the same and `w_in` is not touched: with two pointers
// that may be equal, the loops could not be vectorised. A shrink of 1 changes no bit.

namespace rubato::update_loops {

template <bool kInPlace>
RUBATO_KERNEL_BODY void Sgd(const UpdateRule& rule, const UnalignedFloat* __restrict g, const float* __restrict w_in,
                            float* __restrict w, int n) {
  const float learning_rate = rule.learning_rate, shrink = rule.shrink;
  for (int i = 0; i < n; ++i) w[i] = shrink * (kInPlace ? w[i] : w_in[i]) - learning_rate * g[i];
}

template <bool kInPlace>
RUBATO_KERNEL_BODY void Momentum(const UpdateRule& rule, const UnalignedFloat* __restrict g,
                                 const float* __restrict w_in, float* __restrict w, float* __restrict v, int n) {
  const float learning_rate = rule.learning_rate, mu = rule.momentum, shrink = rule.shrink;
  for (int i = 0; i < n; ++i) {
    v[i] = mu * v[i] + g[i];
    w[i] = shrink * (kInPlace ? w[i] : w_in[i]) - learning_rate * v[i];
  }
}

template <bool kInPlace>
RUBATO_KERNEL_BODY void Nesterov(const UpdateRule& rule, const UnalignedFloat* __restrict g,
                                 const float* __restrict w_in, float* __restrict w, float* __restrict v, int n) {
  const float learning_rate = rule.learning_rate, mu = rule.momentum, shrink = rule.shrink;
  for (int i = 0; i < n; ++i) {
    v[i] = mu * v[i] + g[i];
    w[i] = shrink * (kInPlace ? w[i] : w_in[i]) - learning_rate * (g[i] + mu * v[i]);
  }
}

template <bool kInPlace>
RUBATO_KERNEL_BODY void AdaGrad(const UpdateRule& rule, const UnalignedFloat* __restrict g,
                                const float* __restrict w_in, float* __restrict w, float* __restrict a, int n) {
  const float learning_rate = rule.learning_rate, epsilon = rule.epsilon, shrink = rule.shrink;
  for (int i = 0; i < n; ++i) {
    a[i] += g[i] * g[i];
    w[i] = shrink * (kInPlace ? w[i] : w_in[i]) - learning_rate * g[i] / (std::sqrt(a[i]) + epsilon);
  }
}

template <bool kInPlace>
RUBATO_KERNEL_BODY void RmsProp(const UpdateRule& rule, const UnalignedFloat* __restrict g,
                                const float* __restrict w_in, float* __restrict w, float* __restrict a, int n) {
  const float learning_rate = rule.learning_rate, epsilon = rule.epsilon, shrink = rule.shrink;
  const float rho = rule.beta2, complement = rule.beta2_complement;
  for (int i = 0; i < n; ++i) {
    a[i] = rho * a[i] + complement * (g[i] * g[i]);
    w[i] = shrink * (kInPlace ? w[i] : w_in[i]) - learning_rate * g[i] / (std::sqrt(a[i]) + epsilon);
  }
}

template <bool kInPlace>
RUBATO_KERNEL_BODY void Adam(const UpdateRule& rule, const UnalignedFloat* __restrict g, const float* __restrict w_in,
                             float* __restrict w, float* __restrict m, float* __restrict v, int n) {
  const float learning_rate = rule.learning_rate, epsilon = rule.epsilon, scale = rule.second_moment_scale;
  const float beta1 = rule.beta1, complement1 = rule.beta1_complement, shrink = rule.shrink;
  const float beta2 = rule.beta2, complement2 = rule.beta2_complement;
  for (int i = 0; i < n; ++i) {
    m[i] = beta1 * m[i] + complement1 * g[i];
    v[i] = beta2 * v[i] + complement2 * (g[i] * g[i]);
    w[i] = shrink * (kInPlace ? w[i] : w_in[i]) - learning_rate * m[i] / (std::sqrt(v[i]) * scale + epsilon);
  }
}

// What L2 regularisation with `l2` adds to gradients.
RUBATO_KERNEL_BODY void AddL2(float l2, const float* __restrict w, float* __restrict g, int n) {
  for (int i = 0; i < n; ++i) g[i] += l2 * w[i];
}

// The algorithm on one block, whose gradients hold what L2 regularisation adds. Slots from element `offset` on.
template <bool kInPlace>
RUBATO_KERNEL_BODY void ApplyBlock(const UpdateRule& rule, const UnalignedFloat* g, const float* w_in, float* w,
                                   float* const* slots, int64_t offset, int n) {
  switch (rule.algorithm) {
    case v1::OptimizerConfig::MOMENTUM:
      return Momentum<kInPlace>(rule, g, w_in, w, slots[0] + offset, n);
    case v1::OptimizerConfig::NESTEROV:
      return Nesterov<kInPlace>(rule, g, w_in, w, slots[0] + offset, n);
    case v1::OptimizerConfig::ADAGRAD:
      return AdaGrad<kInPlace>(rule, g, w_in, w, slots[0] + offset, n);
    case v1::OptimizerConfig::RMSPROP:
      return RmsProp<kInPlace>(rule, g, w_in, w, slots[0] + offset, n);
    case v1::OptimizerConfig::ADAM:
    case v1::OptimizerConfig::ADAMW:
      return Adam<kInPlace>(rule, g, w_in, w, slots[0] + offset, slots[1] + offset, n);
    default:
      return Sgd<kInPlace>(rule, g, w_in, w, n);
  }
}

}  // namespace rubato::update_loops

#endif  // RUBATO_KERNELS_OPTIMIZER_UPDATE_LOOPS_H_
