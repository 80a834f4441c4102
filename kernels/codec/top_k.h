#ifndef RUBATO_KERNELS_CODEC_TOP_K_H_
#define RUBATO_KERNELS_CODEC_TOP_K_H_

#include <cstdint>

#include "kernels/optimizer/isa.h"

namespace rubato::codec {

// Writes the `count` elements of values + residual that are largest in magnitude (codec.h: Encode) and sets those to
// zero in `residual`, which becomes the sum elsewhere. Leaves `residual` alone where an element is not finite.
// 0 <= count <= n < 2^32; count > 0 unless n = 0. Linear in n whatever the values; needs up to 8 n bytes meanwhile.
int64_t EncodeTopK(Isa isa, int64_t count, const float* values, int64_t n, float* residual, uint8_t* out);

// Elements [begin, begin + count) of a message that CheckEncoded accepts.
void DecodeTopK(const uint8_t* data, int64_t begin, int64_t count, float* out);

}  // namespace rubato::codec

#endif  // RUBATO_KERNELS_CODEC_TOP_K_H_
