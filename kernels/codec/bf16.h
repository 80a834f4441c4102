#ifndef RUBATO_KERNELS_CODEC_BF16_H_
#define RUBATO_KERNELS_CODEC_BF16_H_

#include <bit>
#include <cstdint>

#include "kernels/optimizer/isa.h"

// The upper half of a float32. Plain integer arithmetic without branches, which compilers turn into vectors for every
// instruction set, so that no path depends on a conversion instruction's treatment of special values.

namespace rubato {

RUBATO_KERNEL_BODY float FromBf16(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

namespace bf16 {

inline constexpr uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u, kLargest = 0x7f7f0000u;

// The upper half of what is not rounded: infinities, NaN, which its quiet bit keeps one, and what is not under the
// largest finite bf16, which it becomes.
RUBATO_KERNEL_BODY uint32_t Cut(uint32_t bits) { return (bits >> 16) | ((bits & kMagnitude) > kInfinity ? 0x40u : 0u); }

}  // namespace bf16

// To the nearest, of two the even one.
RUBATO_KERNEL_BODY uint16_t NearestBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t nearest = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  return static_cast<uint16_t>((bits & bf16::kMagnitude) >= bf16::kLargest ? bf16::Cut(bits) : nearest);
}

// One of the two beside it, with `noise` of 16 bits: the mean over all noise is the value.
RUBATO_KERNEL_BODY uint16_t RandomBf16(float value, uint32_t noise) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + noise) >> 16;
  return static_cast<uint16_t>((bits & bf16::kMagnitude) >= bf16::kLargest ? bf16::Cut(bits) : rounded);
}

}  // namespace rubato

#endif  // RUBATO_KERNELS_CODEC_BF16_H_
