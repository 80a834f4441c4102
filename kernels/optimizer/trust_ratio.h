#ifndef RUBATO_KERNELS_OPTIMIZER_TRUST_RATIO_H_
#define RUBATO_KERNELS_OPTIMIZER_TRUST_RATIO_H_

#include <cstdint>

#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/isa.h"
#include "kernels/optimizer/update_formula.h"

namespace rubato {

// ReduceAndApply of a whole tensor with a rule whose trust_ratio is not kNone: LARS or LAMB (update_rule.h). The ratio
// is known when all of the tensor was read, so it is two passes over memory under kLars and three under kLamb.
// Squares are added up in float32 within a block of 256 elements and in float64 beyond. The same bits on every
// processor and however messages are cut. The arguments are those of ReduceAndApply. Keeps no state: safe from several
// threads on different arrays.
void ApplyWithTrustRatio(const UpdateRule& rule, const EncodedGradient* contributions, int count,
                         const float* weights_in, float* weights_out, const float* const* slots_in,
                         float* const* slots_out, int64_t n);

// The same on a given instruction set, which this processor supports; for tests.
void ApplyWithTrustRatioOn(Isa isa, const UpdateRule& rule, const EncodedGradient* contributions, int count,
                           const float* weights_in, float* weights_out, const float* const* slots_in,
                           float* const* slots_out, int64_t n);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_TRUST_RATIO_H_
