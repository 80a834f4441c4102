#include "server/gradient.h"

#include "kernels/codec/codec.h"
#include "kernels/optimizer/all_finite.h"

namespace rubato::server {

bool IsFinite(const Gradient& gradient, int64_t length) {
  if (gradient.codec == v1::NONE) {
    return AllFinite(gradient.pieces.data(), static_cast<int>(gradient.pieces.size()));
  }
  const GradientPiece& piece = gradient.pieces.front();
  return AllFiniteEncoded(gradient.codec, static_cast<const uint8_t*>(piece.data), piece.bytes, length);
}

}  // namespace rubato::server
