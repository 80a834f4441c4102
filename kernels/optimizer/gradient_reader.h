#ifndef RUBATO_KERNELS_OPTIMIZER_GRADIENT_READER_H_
#define RUBATO_KERNELS_OPTIMIZER_GRADIENT_READER_H_

#include <cstddef>
#include <cstdint>

#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/isa.h"

namespace rubato {

// Reads a gradient's elements from the first to the last, block by block. Cheap to make; refers to the gradient, which
// outlives it. Not thread-safe.
//
//   GradientReader reader(Isa::kAvx2, gradient, n);
//   const void* floats = reader.Next(256, scratch);
class GradientReader {
 public:
  // n elements in all.
  GradientReader(Isa isa, const EncodedGradient& gradient, int64_t n)
      : gradient_(&gradient),
        isa_(isa),
        elements_(n),
        plain_(gradient.codec == v1::NONE || gradient.codec == v1::CODEC_UNSPECIFIED) {}

  // The next `count` elements as float32 at any alignment: in the message, if they are plain and in one piece, or in
  // `scratch`, which has room for them. `count` is a multiple of 256, but for the last block.
  const void* Next(int64_t count, float* scratch) {
    const size_t bytes = sizeof(float) * static_cast<size_t>(count);
    if (plain_ && piece_ < gradient_->pieces.size() && gradient_->pieces[piece_].size() - at_ >= bytes) {
      const uint8_t* data = gradient_->pieces[piece_].data() + at_;
      at_ += bytes;
      return data;
    }
    return Fill(count, scratch);
  }

 private:
  // Gathers or decodes into `scratch`.
  const void* Fill(int64_t count, float* scratch);

  const EncodedGradient* gradient_;
  Isa isa_;
  int64_t elements_;
  bool plain_;
  // Plain: the piece that the next byte is in, and its place there.
  size_t piece_ = 0;
  size_t at_ = 0;
  // Encoded: elements read.
  int64_t decoded_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_GRADIENT_READER_H_
