#include "kernels/optimizer/gradient_reader.h"

#include <algorithm>
#include <cstring>

#include "kernels/codec/codec.h"

namespace rubato {

const void* GradientReader::Fill(int64_t count, float* scratch) {
  if (!plain_) {
    const ByteSpan encoded = gradient_->pieces.front();
    DecodeRangeOn(isa_, gradient_->codec, encoded.data(), static_cast<int64_t>(encoded.size()), elements_, decoded_,
                  count, scratch);
    decoded_ += count;
    return scratch;
  }
  char* out = reinterpret_cast<char*>(scratch);
  size_t missing = sizeof(float) * static_cast<size_t>(count);
  while (missing > 0 && piece_ < gradient_->pieces.size()) {
    const ByteSpan piece = gradient_->pieces[piece_];
    const size_t bytes = std::min(missing, piece.size() - at_);
    if (bytes > 0) std::memcpy(out, piece.data() + at_, bytes);
    out += bytes;
    missing -= bytes;
    at_ += bytes;
    if (at_ == piece.size()) {
      ++piece_;
      at_ = 0;
    }
  }
  return scratch;
}

}  // namespace rubato
