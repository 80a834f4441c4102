#ifndef RUBATO_KERNELS_OPTIMIZER_GRADIENT_SPAN_H_
#define RUBATO_KERNELS_OPTIMIZER_GRADIENT_SPAN_H_

#include <cstdint>

#include "proto/job_config.pb.h"

namespace rubato {

// A float in a received message, which may start at any byte.
using UnalignedFloat = float __attribute__((aligned(1), may_alias));

// A part of a message, which a transport may cut anywhere: of any alignment and length, also none.
struct GradientPiece {
  const void* data;
  int64_t bytes;
};

// One contribution to an update of n elements, and its weight in the sum. Owns nothing.
struct GradientSpan {
  // NONE: `count` pieces that are together 4 n bytes of little-endian float32; an element may lie in two pieces or
  // more. Other codecs: one piece, which CheckEncoded (kernels/codec) accepts.
  const GradientPiece* pieces;
  int count;
  float weight;
  v1::Codec codec = v1::NONE;
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_GRADIENT_SPAN_H_
