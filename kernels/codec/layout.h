#ifndef RUBATO_KERNELS_CODEC_LAYOUT_H_
#define RUBATO_KERNELS_CODEC_LAYOUT_H_

#include <cstdint>
#include <cstring>

// What encoded bytes (docs/formats.md, "Codecs") are made of, and how to read it at any alignment.

namespace rubato::codec {

// Elements with one scale.
inline constexpr int64_t kBlock = 256;

// Types whose objects may lie at any address.
using UnalignedFloat __attribute__((aligned(1), may_alias)) = float;
using UnalignedU32 __attribute__((aligned(1), may_alias)) = uint32_t;
using UnalignedU16 __attribute__((aligned(1), may_alias)) = uint16_t;

inline constexpr uint32_t kMagnitudeBits = 0x7fffffffu;
// Magnitudes from here on are infinite or not a number.
inline constexpr uint32_t kInfinityBits = 0x7f800000u;

inline float LoadFloat(const uint8_t* data) { return *reinterpret_cast<const UnalignedFloat*>(data); }
inline uint32_t LoadU32(const uint8_t* data) { return *reinterpret_cast<const UnalignedU32*>(data); }
inline void StoreFloat(float value, uint8_t* data) { std::memcpy(data, &value, sizeof(value)); }
inline void StoreU32(uint32_t value, uint8_t* data) { std::memcpy(data, &value, sizeof(value)); }

}  // namespace rubato::codec

#endif  // RUBATO_KERNELS_CODEC_LAYOUT_H_
