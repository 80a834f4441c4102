#include <bit>
#include <cstdint>

#include "kernels/codec/half.h"
#include "kernels/codec/implementation.h"
#include "kernels/codec/layout.h"

// BF16: the upper half of a float32. Plain integer arithmetic without branches, which compilers turn into vectors for
// every instruction set, so that no path depends on a conversion instruction's treatment of special values.

namespace rubato::codec {
namespace {

RUBATO_KERNEL_BODY uint16_t ToBf16(uint32_t bits) {
  const uint32_t magnitude = bits & kMagnitudeBits;
  const uint32_t nearest_even = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  // Infinities and what would round to one are cut off, to the largest finite value; NaN is kept one by its quiet bit.
  const uint32_t cut = (bits >> 16) | (magnitude > kInfinityBits ? 0x40u : 0u);
  return static_cast<uint16_t>(magnitude > 0x7f7f7fffu ? cut : nearest_even);
}

RUBATO_KERNEL_BODY void EncodeAll(const float* __restrict values, int64_t n, uint8_t* __restrict out) {
  UnalignedU16* __restrict halves = reinterpret_cast<UnalignedU16*>(out);
  for (int64_t i = 0; i < n; ++i) halves[i] = ToBf16(std::bit_cast<uint32_t>(values[i]));
}

RUBATO_KERNEL_BODY void DecodeAll(const uint8_t* __restrict data, int64_t n, float* __restrict out) {
  const UnalignedU16* __restrict halves = reinterpret_cast<const UnalignedU16*>(data);
  for (int64_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(uint32_t{halves[i]} << 16);
}

RUBATO_KERNEL_BODY void Encode(const Encoding& e) { EncodeAll(e.values, e.n, e.out); }

RUBATO_KERNEL_BODY void Decode(const uint8_t* data, int64_t begin, int64_t count, float* out) {
  DecodeAll(data + kHalfBytes * begin, count, out);
}

RUBATO_KERNEL_BODY bool AllFinite(const uint8_t* data, int64_t n) { return AllFiniteHalves(data, n, 0x7f80); }

RUBATO_CODEC_LOOPS

}  // namespace

constinit const Implementation kBf16 = {kBaseline, kSse42, kAvx2, kAvx512};

}  // namespace rubato::codec
