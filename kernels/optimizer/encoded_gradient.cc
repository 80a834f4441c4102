#include "kernels/optimizer/encoded_gradient.h"

#include "kernels/codec/codec.h"
#include "kernels/optimizer/all_finite.h"

namespace rubato {

bool IsFinite(const EncodedGradient& gradient, int64_t n) {
  if (gradient.codec == v1::NONE || gradient.codec == v1::CODEC_UNSPECIFIED) return AllFinite(gradient.pieces);
  const ByteSpan encoded = gradient.pieces.front();
  return AllFiniteEncoded(gradient.codec, encoded.data(), static_cast<int64_t>(encoded.size()), n);
}

}  // namespace rubato
