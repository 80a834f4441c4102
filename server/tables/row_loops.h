#ifndef RUBATO_SERVER_TABLES_ROW_LOOPS_H_
#define RUBATO_SERVER_TABLES_ROW_LOOPS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/codec/bf16.h"
#include "kernels/optimizer/isa.h"
#include "kernels/optimizer/update_formula.h"
#include "server/tables/row_format.h"
#include "server/tables/row_rule.h"

// The updates of one row, as it lies in memory (RowFormat). Inlined into a function for each instruction set. Every
// element goes through the same float32 operations on all of them, and sums have one order, so that they give the same
// bits.

namespace rubato::server::row_loops {

// Sums that are independent of each other, whatever the vectors of the processor.
inline constexpr int kLanes = 8;

RUBATO_KERNEL_BODY float SumOfSquares(const float* g, float scale, int dimension) {
  float lanes[kLanes] = {};
  int i = 0;
  for (; i + kLanes <= dimension; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += (scale * g[i + lane]) * (scale * g[i + lane]);
  }
  for (int lane = 0; i + lane < dimension; ++lane) lanes[lane] += (scale * g[i + lane]) * (scale * g[i + lane]);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

// What a row's weights are rounded by in a step.
RUBATO_KERNEL_BODY uint32_t DrawOf(uint64_t hash, uint32_t step) {
  return static_cast<uint32_t>(hash >> 16) + step * 0x85ebca6bu;
}

// 16 bits for the i-th of them: a mixing function that Wellons found by searching ("hash prospector", 2018).
RUBATO_KERNEL_BODY uint32_t Noise(uint32_t draw, int i) {
  uint32_t x = draw + static_cast<uint32_t>(i) * 0x9e3779b9u;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x >> 16;
}

RUBATO_KERNEL_BODY float Load(float weight) { return weight; }
RUBATO_KERNEL_BODY float Load(uint16_t weight) { return FromBf16(weight); }
RUBATO_KERNEL_BODY void LoadWeights(const float* weights, size_t dimension, float* out) {
  // A short loop of known length would be unrolled element by element before anything makes vectors of it.
  std::memcpy(out, weights, sizeof(float) * dimension);
}
RUBATO_KERNEL_BODY void LoadWeights(const uint16_t* __restrict weights, size_t dimension, float* __restrict out) {
  for (size_t i = 0; i < dimension; ++i) out[i] = FromBf16(weights[i]);
}
// What is kept of the i-th weight.
template <typename Weight>
RUBATO_KERNEL_BODY Weight Stored(float value, uint32_t draw, int i) {
  if constexpr (std::is_same_v<Weight, float>) {
    return value;
  } else {
    return RandomBf16(value, Noise(draw, i));
  }
}

template <typename Weight>
RUBATO_KERNEL_BODY void Subtract(float step, uint32_t draw, int i, Weight* w) {
  w[i] = Stored<Weight>(Load(w[i]) - step, draw, i);
}

// A gradient is `scale` times what is in `g`. `draw`: DrawOf the row's hash.
template <RowFormula kFormula, typename Weight>
RUBATO_KERNEL_BODY void UpdateRow(const RowRule& rule, const float* __restrict g, float scale, uint32_t draw,
                                  char* __restrict row, int dimension) {
  // A copy, which nothing that is written here can change.
  UpdateRule update = rule.update;
  Weight* __restrict w = reinterpret_cast<Weight*>(row);
  float* __restrict state = reinterpret_cast<float*>(row + StateOffset<Weight>(dimension));
  if constexpr (kFormula == RowFormula::kSgd) {
    for (int i = 0; i < dimension; ++i) Subtract(SgdFormula::Step(update, scale * g[i]), draw, i, w);
  } else if constexpr (kFormula == RowFormula::kAdaGrad) {
    for (int i = 0; i < dimension; ++i) Subtract(AdaGradFormula::Step(update, scale * g[i], state[i]), draw, i, w);
  } else if constexpr (kFormula == RowFormula::kRowWiseAdaGrad) {
    state[0] += SumOfSquares(g, scale, dimension) / static_cast<float>(dimension);
    const float step = update.learning_rate / (sqrtf(state[0]) + update.epsilon);
    for (int i = 0; i < dimension; ++i) Subtract(step * (scale * g[i]), draw, i, w);
  } else if constexpr (kFormula == RowFormula::kLazyAdam) {
    float* __restrict m = state;
    float* __restrict v = state + dimension;
    uint32_t t = 0;
    std::memcpy(&t, state + 2 * dimension, sizeof(t));
    if (t < UINT32_MAX) ++t;
    std::memcpy(state + 2 * dimension, &t, sizeof(t));
    update.learning_rate *= rule.corrections->first(t);
    update.second_moment_scale = rule.corrections->second(t);
    for (int i = 0; i < dimension; ++i) Subtract(AdamFormula::Step(update, scale * g[i], m[i], v[i]), draw, i, w);
  } else {
    float* __restrict z = state;
    float* __restrict n = state + dimension;
    const float inverse_rate = 1 / update.learning_rate, beta = rule.beta, l1 = rule.l1, l2 = rule.l2;
    for (int i = 0; i < dimension; ++i) {
      const float gradient = scale * g[i];
      const float sum = n[i] + gradient * gradient;
      const float root = sqrtf(sum);
      z[i] += gradient - (root - sqrtf(n[i])) * inverse_rate * Load(w[i]);
      n[i] = sum;
      const float shrunk = copysignf(l1, z[i]) - z[i];
      const float weight = shrunk / ((beta + root) * inverse_rate + l2);
      w[i] = Stored<Weight>(fabsf(z[i]) <= l1 ? 0 : weight, draw, i);
    }
  }
}

}  // namespace rubato::server::row_loops

#endif  // RUBATO_SERVER_TABLES_ROW_LOOPS_H_
