#include "kernels/optimizer/gradient_crc.h"

#include <libdeflate.h>

namespace rubato {

uint32_t GradientCrc(const EncodedGradient& gradient) {
  uint32_t crc = 0;
  for (const ByteSpan& piece : gradient.pieces) crc = libdeflate_crc32(crc, piece.data(), piece.size());
  return crc;
}

}  // namespace rubato
