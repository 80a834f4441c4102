#ifndef RUBATO_KERNELS_CODEC_BLOCK_LOOPS_H_
#define RUBATO_KERNELS_CODEC_BLOCK_LOOPS_H_

#include <bit>
#include <cstdint>

#include "kernels/codec/layout.h"
#include "kernels/optimizer/isa.h"

// What the codecs with blocks share. A block has always kBlock elements: a chunk's last one is filled up with zeros.

namespace rubato::codec {

RUBATO_KERNEL_BODY uint32_t Magnitude(float value) { return std::bit_cast<uint32_t>(value) & kMagnitudeBits; }

// The largest magnitude, as bits: at least kInfinityBits if an element is not finite.
RUBATO_KERNEL_BODY uint32_t LargestMagnitude(const float* block, int64_t n) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t magnitude = Magnitude(block[i]);
    largest = largest > magnitude ? largest : magnitude;
  }
  return largest;
}

// The bits of a group of 32 elements. Vectors of 32-bit lanes can be built from and tested against these.
inline constexpr int kMaskBits = 32;
struct alignas(64) MaskTable {
  uint32_t bit[kMaskBits];
};
inline constexpr MaskTable kMaskTable = [] {
  MaskTable table = {};
  for (int i = 0; i < kMaskBits; ++i) table.bit[i] = 1u << i;
  return table;
}();

}  // namespace rubato::codec

#endif  // RUBATO_KERNELS_CODEC_BLOCK_LOOPS_H_
