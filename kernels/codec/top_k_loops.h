#ifndef RUBATO_KERNELS_CODEC_TOP_K_LOOPS_H_
#define RUBATO_KERNELS_CODEC_TOP_K_LOOPS_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/codec/block_loops.h"
#include "kernels/codec/layout.h"

// TOP_K's passes over all elements.

namespace rubato::codec {

struct Found {
  // Elements of `least` or more.
  int64_t count;
  // Whether all elements are finite.
  bool finite;
};

// Writes to `indices`, which has room for n + 2, where the magnitude of values + residual is `least` or more.
RUBATO_KERNEL_BODY Found Collect(const float* __restrict values, const float* __restrict residual, int64_t n,
                                 uint32_t least, uint32_t* __restrict indices) {
  int64_t count = 0;
  int32_t largest = 0;
  const int32_t below = static_cast<int32_t>(least) - 1;
  const int64_t whole = n - n % kMaskBits;
  for (int64_t begin = 0; begin < whole; begin += kMaskBits) {
    uint32_t mask = 0;
    for (int i = 0; i < kMaskBits; ++i) {
      // Magnitudes are never negative as signed numbers, and the sign of a difference is a mask.
      const int32_t magnitude = static_cast<int32_t>(Magnitude(values[begin + i] + residual[begin + i]));
      largest = std::max(largest, magnitude);
      mask |= static_cast<uint32_t>((below - magnitude) >> 31) & kMaskTable.bit[i];
    }
    // If few elements are large, a group has up to two, and how many cannot be foretold: a loop alone would be
    // mispredicted all the time. The highest bit keeps countr_zero from looking whether its argument is zero.
    for (int i = 0; i < 2; ++i) {
      indices[count] = static_cast<uint32_t>(begin + std::countr_zero(mask | 0x80000000u));
      count += mask != 0 ? 1 : 0;
      mask &= mask - 1;
    }
    for (; mask != 0; mask &= mask - 1) indices[count++] = static_cast<uint32_t>(begin + std::countr_zero(mask));
  }
  for (int64_t i = whole; i < n; ++i) {
    const int32_t magnitude = static_cast<int32_t>(Magnitude(values[i] + residual[i]));
    largest = std::max(largest, magnitude);
    if (magnitude > below) indices[count++] = static_cast<uint32_t>(i);
  }
  return {count, largest < static_cast<int32_t>(kInfinityBits)};
}

RUBATO_KERNEL_BODY void Add(const float* __restrict values, int64_t n, float* __restrict residual) {
  for (int64_t i = 0; i < n; ++i) residual[i] += values[i];
}

}  // namespace rubato::codec

#endif  // RUBATO_KERNELS_CODEC_TOP_K_LOOPS_H_
