#ifndef RUBATO_KERNELS_OPTIMIZER_REDUCE_AND_APPLY_H_
#define RUBATO_KERNELS_OPTIMIZER_REDUCE_AND_APPLY_H_

#include <cstdint>

#include "kernels/optimizer/isa.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato {

// One contribution to an update: n little-endian float32 of any alignment, and its weight in the sum.
struct GradientSpan {
  const void* data;
  float weight;
};

// Reduces the contributions and applies the optimizer in one pass over memory:
//   g = contributions[0].weight * contributions[0].data + contributions[1].weight * contributions[1].data + ...
// summed in the given order, each product and sum rounded to float32, then `rule` with g. Every element goes through
// the same float32 operations wherever it lies, so the result has the same bits for any split of an array into calls
// and on every processor. One contribution of weight 1 is exactly the plain update; none (count = 0) is a zero
// gradient.
//
//   float* slots[] = {velocity};
//   GradientSpan mean[] = {{gradient0, 0.5f}, {gradient1, 0.5f}};
//   ReduceAndApply(rule, mean, 2, weights, weights, slots, n);
//
// All arrays have n elements. `weights_out` is `weights_in` or does not overlap it; nothing else overlaps.
// `slots` holds NumSlots(rule.algorithm) pointers. Keeps no state: safe from several threads on different arrays.
void ReduceAndApply(const UpdateRule& rule, const GradientSpan* contributions, int count, const float* weights_in,
                    float* weights_out, float* const* slots, int64_t n);

// The same on a given instruction set, which this processor supports; for tests and benchmarks.
void ReduceAndApplyOn(Isa isa, const UpdateRule& rule, const GradientSpan* contributions, int count,
                      const float* weights_in, float* weights_out, float* const* slots, int64_t n);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_REDUCE_AND_APPLY_H_
