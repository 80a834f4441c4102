#include <cstdint>

#include "kernels/codec/bf16.h"
#include "kernels/codec/half.h"
#include "kernels/codec/implementation.h"
#include "kernels/codec/layout.h"

namespace rubato::codec {
namespace {

RUBATO_KERNEL_BODY void EncodeAll(const float* __restrict values, int64_t n, uint8_t* __restrict out) {
  UnalignedU16* __restrict halves = reinterpret_cast<UnalignedU16*>(out);
  for (int64_t i = 0; i < n; ++i) halves[i] = NearestBf16(values[i]);
}

RUBATO_KERNEL_BODY void DecodeAll(const uint8_t* __restrict data, int64_t n, float* __restrict out) {
  const UnalignedU16* __restrict halves = reinterpret_cast<const UnalignedU16*>(data);
  for (int64_t i = 0; i < n; ++i) out[i] = FromBf16(halves[i]);
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
