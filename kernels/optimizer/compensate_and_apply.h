#ifndef RUBATO_KERNELS_OPTIMIZER_COMPENSATE_AND_APPLY_H_
#define RUBATO_KERNELS_OPTIMIZER_COMPENSATE_AND_APPLY_H_

#include <cstdint>

#include "kernels/optimizer/compensation.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/isa.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato {

// ReduceAndApply of one push, compensated for its staleness on the way, in one pass over memory: of the same bits on
// every processor. The push counts with weight 1.
//
//   CompensateAndApply(rule, MakeCompensation(config.consistency().compensation(), ++pushes), push, pulled->data(),
//                      weights, next_weights, slots, slots, n);
//
// `pulled`: the weights that it was computed from; null: those that it is applied to, or nobody looks
// (ReadsPulledWeights). `slots_in` and `slots_out` hold the optimizer's slots, NumSlots(rule.formula), and then the
// compensation's. kDelayedNesterov takes a rule of kNesterov. What is written is what was read, or does not overlap it,
// and each slot by itself; `pulled` is not written. Keeps no state: safe from several threads on different arrays.
void CompensateAndApply(const UpdateRule& rule, const Compensation& compensation, const EncodedGradient& push,
                        const float* pulled, const float* weights_in, float* weights_out, const float* const* slots_in,
                        float* const* slots_out, int64_t n);

// The same on a given instruction set, which this processor supports; for tests and benchmarks.
void CompensateAndApplyOn(Isa isa, const UpdateRule& rule, const Compensation& compensation,
                          const EncodedGradient& push, const float* pulled, const float* weights_in, float* weights_out,
                          const float* const* slots_in, float* const* slots_out, int64_t n);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_COMPENSATE_AND_APPLY_H_
