#ifndef RUBATO_KERNELS_OPTIMIZER_REDUCE_AND_APPLY_H_
#define RUBATO_KERNELS_OPTIMIZER_REDUCE_AND_APPLY_H_

#include <cstdint>

#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/isa.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato {

// Reduces the contributions and applies the optimizer in one pass over memory, decoding them on the way:
//   g = contributions[0].weight * elements of contributions[0] + contributions[1].weight * elements of ... + ...
// summed in the given order, each product and sum rounded to float32, then `rule` with g. Every element goes through
// the same float32 operations wherever it lies, so the result has the same bits for any split of an array into calls,
// however messages are cut, and on every processor. One contribution of weight 1 is exactly the plain update; none
// (count = 0) is a zero gradient.
//
//   float* slots[] = {velocity};
//   ByteSpan piece0 = BytesOf(gradient0, n), piece1 = BytesOf(gradient1, n);
//   EncodedGradient mean[] = {{{&piece0, 1}, 0.5f}, {{&piece1, 1}, 0.5f}};
//   ReduceAndApply(rule, mean, 2, weights, weights, slots, slots, n);
//
// All arrays have n elements. `slots_in` and `slots_out` hold NumSlots(rule.formula) pointers. What is written is what
// was read, or does not overlap it, and each slot by itself; nothing else overlaps. `moved_crc32s`, if given, has a
// place for each slot and takes the CRC-32 (zlib's polynomial) of what is read of those that are written elsewhere: a
// checkpoint that holds it wants it next, and here it is in the caches. Keeps no state: safe from several threads on
// different arrays.
void ReduceAndApply(const UpdateRule& rule, const EncodedGradient* contributions, int count, const float* weights_in,
                    float* weights_out, const float* const* slots_in, float* const* slots_out, int64_t n,
                    uint32_t* moved_crc32s = nullptr);

// The instruction set that it takes, the fastest for these loops of those that this processor supports.
Isa ReduceAndApplyIsa();

// The same on a given instruction set, which this processor supports; for tests and benchmarks.
void ReduceAndApplyOn(Isa isa, const UpdateRule& rule, const EncodedGradient* contributions, int count,
                      const float* weights_in, float* weights_out, const float* const* slots_in,
                      float* const* slots_out, int64_t n, uint32_t* moved_crc32s = nullptr);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_REDUCE_AND_APPLY_H_
