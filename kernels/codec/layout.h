#ifndef RUBATO_KERNELS_CODEC_LAYOUT_H_
#define RUBATO_KERNELS_CODEC_LAYOUT_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

// Where things are in an encoded message (docs/formats.md, "Codecs"), and how to read them at any alignment.

namespace rubato::codec {

// Elements with one scale.
inline constexpr int64_t kBlock = 256;

// INT8, per block: float32 scale, then one byte an element.
inline constexpr int64_t kInt8BlockBytes = 4 + kBlock;
inline int64_t Int8Bytes(int64_t n) { return 4 * ((n + kBlock - 1) / kBlock) + n; }

// ONE_BIT, per block: float32 mean of the elements that are not negative, float32 mean magnitude of those that are,
// then one bit an element, lowest first, padded with zeros to a byte.
inline constexpr int64_t kOneBitBlockBytes = 8 + kBlock / 8;
inline int64_t OneBitBytes(int64_t n) { return 8 * ((n + kBlock - 1) / kBlock) + (n + 7) / 8; }

// TOP_K: uint32 count, the indices, the values.
inline int64_t TopKBytes(int64_t count) { return 4 + 8 * count; }

// Elements that TOP_K sends.
inline int64_t TopKCount(double fraction, int64_t n) {
  if (n == 0) return 0;
  const double wanted = std::ceil(fraction * static_cast<double>(n));
  return wanted >= static_cast<double>(n) ? n : wanted >= 1 ? static_cast<int64_t>(wanted) : 1;
}

// The largest INT8 scale that a sender writes: 127 times the next float32 is infinite.
inline constexpr float kMaxInt8Scale = 8454659 * 0x1p98f;
static_assert(kMaxInt8Scale * 127 <= std::numeric_limits<float>::max());

// Types whose objects may lie at any address.
using UnalignedFloat = float __attribute__((aligned(1), may_alias));
using UnalignedU32 = uint32_t __attribute__((aligned(1), may_alias));
using UnalignedU16 = uint16_t __attribute__((aligned(1), may_alias));

inline constexpr uint32_t kMagnitudeBits = 0x7fffffffu;
// Magnitudes from here on are infinite or not a number.
inline constexpr uint32_t kInfinityBits = 0x7f800000u;

inline float LoadFloat(const uint8_t* data) { return *reinterpret_cast<const UnalignedFloat*>(data); }
inline uint32_t LoadU32(const uint8_t* data) { return *reinterpret_cast<const UnalignedU32*>(data); }
inline void StoreFloat(float value, uint8_t* data) { std::memcpy(data, &value, sizeof(value)); }
inline void StoreU32(uint32_t value, uint8_t* data) { std::memcpy(data, &value, sizeof(value)); }

}  // namespace rubato::codec

#endif  // RUBATO_KERNELS_CODEC_LAYOUT_H_
