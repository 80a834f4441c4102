#ifndef RUBATO_KERNELS_CODEC_HALF_H_
#define RUBATO_KERNELS_CODEC_HALF_H_

#include <cstdint>

#include "kernels/codec/layout.h"
#include "kernels/optimizer/isa.h"

// What BF16 and FP16 share, both 16 bits an element.

namespace rubato::codec {

inline constexpr int64_t kHalfBytes = 2;

// Whether none of the n halves has all bits of `exponent` set.
RUBATO_KERNEL_BODY bool AllFiniteHalves(const uint8_t* data, int64_t n, uint16_t exponent) {
  constexpr int64_t kStride = 4096;
  const UnalignedU16* halves = reinterpret_cast<const UnalignedU16*>(data);
  for (int64_t begin = 0; begin < n; begin += kStride) {
    const int64_t end = n < begin + kStride ? n : begin + kStride;
    uint16_t found = 0;
    for (int64_t i = begin; i < end; ++i) found |= (halves[i] & exponent) == exponent ? 1 : 0;
    if (found != 0) return false;
  }
  return true;
}

}  // namespace rubato::codec

#endif  // RUBATO_KERNELS_CODEC_HALF_H_
