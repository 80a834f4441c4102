#ifndef RUBATO_KERNELS_OPTIMIZER_ENCODED_GRADIENT_H_
#define RUBATO_KERNELS_OPTIMIZER_ENCODED_GRADIENT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/byte_span.h"
#include "proto/job_config.pb.h"

namespace rubato {

// A float in a received message, which may start at any byte. (Clang takes the attribute in this place alone.)
using UnalignedFloat __attribute__((aligned(1), may_alias)) = float;

// A gradient of n elements where it lies, as its codec wrote it, and its weight in the update that it contributes to.
// Owns nothing.
//
//   const ByteSpan piece = BytesOf(gradient, n);
//   const EncodedGradient alone = {.pieces = {&piece, 1}};
struct EncodedGradient {
  // NONE: together 4 n bytes of little-endian float32, which a transport may have cut anywhere; an element may lie in
  // two pieces or more. Other codecs: one piece, which CheckEncoded (kernels/codec) accepts.
  absl::Span<const ByteSpan> pieces;
  float weight = 1;
  v1::Codec codec = v1::NONE;
};

// Whether none of the n elements is infinite or not a number.
bool IsFinite(const EncodedGradient& gradient, int64_t n);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_ENCODED_GRADIENT_H_
