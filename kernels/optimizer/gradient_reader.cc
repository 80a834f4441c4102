#include "kernels/optimizer/gradient_reader.h"

#include <algorithm>
#include <cstring>

#include "kernels/codec/codec.h"

namespace rubato {

const void* GradientReader::Fill(int64_t count, float* scratch) {
  if (!plain_) {
    const GradientPiece& message = span_->pieces[0];
    DecodeRangeOn(isa_, span_->codec, static_cast<const uint8_t*>(message.data), message.bytes, elements_, decoded_,
                  count, scratch);
    decoded_ += count;
    return scratch;
  }
  char* out = reinterpret_cast<char*>(scratch);
  int64_t missing = 4 * count;
  while (missing > 0 && piece_ < span_->count) {
    const GradientPiece& piece = span_->pieces[piece_];
    const int64_t bytes = std::min(missing, piece.bytes - at_);
    if (bytes > 0) std::memcpy(out, static_cast<const char*>(piece.data) + at_, bytes);
    out += bytes;
    missing -= bytes;
    at_ += bytes;
    if (at_ == piece.bytes) {
      ++piece_;
      at_ = 0;
    }
  }
  return scratch;
}

}  // namespace rubato
