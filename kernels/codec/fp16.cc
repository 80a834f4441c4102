#include <bit>
#include <cstdint>

#include "kernels/codec/half.h"
#include "kernels/codec/implementation.h"
#include "kernels/codec/layout.h"

// FP16: IEEE 754 binary16. Plain integer arithmetic without branches, which compilers turn into vectors for every
// instruction set, so that no path depends on a conversion instruction's treatment of special values.

namespace rubato::codec {
namespace {

RUBATO_KERNEL_BODY uint16_t ToFp16(uint32_t bits) {
  constexpr uint32_t kLargest = 0x477fe000u;         // 65504.
  constexpr uint32_t kSmallestNormal = 0x38800000u;  // 2^-14.
  const uint32_t magnitude = bits & kMagnitudeBits;
  const uint32_t finite = magnitude < kLargest ? magnitude : kLargest;
  // The exponent's bias falls by 112; 13 bits of the mantissa are rounded away.
  const uint32_t normal = (finite + 0xfffu + ((finite >> 13) & 1) - (112u << 23)) >> 13;
  // Half's smallest step, 2^-24, is the last bit of numbers from 0.5 on: the addition rounds to it.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(finite) + 0.5f) - 0x3f000000u;
  const uint32_t special = magnitude > kInfinityBits ? 0x7e00u | ((magnitude >> 13) & 0x1ffu) : 0x7c00u;
  const uint32_t rounded = finite < kSmallestNormal ? subnormal : normal;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000u) | (magnitude >= kInfinityBits ? special : rounded));
}

RUBATO_KERNEL_BODY float FromFp16(uint32_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t exponent = half & 0x7c00u;
  const uint32_t shifted = (magnitude << 13) + (112u << 23) + (exponent == 0x7c00u ? 112u << 23 : 0u);
  // Not through a subnormal float32, with which some processors are slow.
  const uint32_t small = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  return std::bit_cast<float>(((half & 0x8000u) << 16) | (exponent == 0 ? small : shifted));
}

RUBATO_KERNEL_BODY void EncodeAll(const float* __restrict values, int64_t n, uint8_t* __restrict out) {
  UnalignedU16* __restrict halves = reinterpret_cast<UnalignedU16*>(out);
  for (int64_t i = 0; i < n; ++i) halves[i] = ToFp16(std::bit_cast<uint32_t>(values[i]));
}

RUBATO_KERNEL_BODY void DecodeAll(const uint8_t* __restrict data, int64_t n, float* __restrict out) {
  const UnalignedU16* __restrict halves = reinterpret_cast<const UnalignedU16*>(data);
  for (int64_t i = 0; i < n; ++i) out[i] = FromFp16(halves[i]);
}

RUBATO_KERNEL_BODY void Encode(const Encoding& e) { EncodeAll(e.values, e.n, e.out); }

RUBATO_KERNEL_BODY void Decode(const uint8_t* data, int64_t begin, int64_t count, float* out) {
  DecodeAll(data + kHalfBytes * begin, count, out);
}

RUBATO_KERNEL_BODY bool AllFinite(const uint8_t* data, int64_t n) { return AllFiniteHalves(data, n, 0x7c00); }

RUBATO_CODEC_LOOPS

}  // namespace

constinit const Implementation kFp16 = {kBaseline, kSse42, kAvx2, kAvx512};

}  // namespace rubato::codec
