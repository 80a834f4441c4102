#ifndef RUBATO_KERNELS_OPTIMIZER_GRADIENT_READER_H_
#define RUBATO_KERNELS_OPTIMIZER_GRADIENT_READER_H_

#include <cstdint>

#include "kernels/optimizer/gradient_span.h"
#include "kernels/optimizer/isa.h"

namespace rubato {

// Reads a contribution's elements from the first to the last, block by block. Cheap to make; refers to the span's
// pieces, which outlive it. Not thread-safe.
//
//   GradientReader reader(Isa::kAvx2, span, n);
//   const void* floats = reader.Next(256, scratch);
class GradientReader {
 public:
  // n elements in all.
  GradientReader(Isa isa, const GradientSpan& span, int64_t n)
      : span_(&span), isa_(isa), elements_(n), plain_(span.codec == v1::NONE || span.codec == v1::CODEC_UNSPECIFIED) {}

  // The next `count` elements as float32 at any alignment: in the message, where they are plain and in one piece, or in
  // `scratch`, which has room for them. `count` is a multiple of 256, but for the last block.
  const void* Next(int64_t count, float* scratch) {
    if (plain_ && piece_ < span_->count && span_->pieces[piece_].bytes - at_ >= 4 * count) {
      const char* data = static_cast<const char*>(span_->pieces[piece_].data) + at_;
      at_ += 4 * count;
      return data;
    }
    return Fill(count, scratch);
  }

 private:
  // Gathers or decodes into `scratch`.
  const void* Fill(int64_t count, float* scratch);

  const GradientSpan* span_;
  Isa isa_;
  int64_t elements_;
  bool plain_;
  // Plain: the piece that the next byte is in, and its place there.
  int piece_ = 0;
  int64_t at_ = 0;
  // Encoded: elements read.
  int64_t decoded_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_GRADIENT_READER_H_
