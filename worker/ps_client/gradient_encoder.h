#ifndef RUBATO_WORKER_PS_CLIENT_GRADIENT_ENCODER_H_
#define RUBATO_WORKER_PS_CLIENT_GRADIENT_ENCODER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/random.h"
#include "kernels/codec/codec.h"

namespace rubato::worker {

// What is sent of a worker's gradients instead of them, made by their tensors' codecs, whose error feedback is kept
// here. Chunks are independent of each other: a chunk's EncodeChunk excludes its other calls, and nothing else.
//
//   encoder->EncodeChunk(chunk, gradient, step);
//   absl::Span<const uint8_t> encoded = encoder->Encoded(chunk);   // until the next EncodeChunk
class GradientEncoder {
 public:
  virtual ~GradientEncoder() = default;

  // NONE: the chunk's gradient is sent as it is, and the encoder has nothing to do with it.
  virtual v1::Codec codec(uint32_t chunk) const = 0;
  // Encodes the chunk's gradient of the step, if that is not done already.
  virtual void EncodeChunk(uint32_t chunk, const float* gradient, int64_t step) = 0;
  // What was encoded last.
  virtual absl::Span<const uint8_t> Encoded(uint32_t chunk) const = 0;
  // The error-feedback residual, an element each; empty for codecs without it. To be used while nothing is encoded.
  virtual std::vector<float>* residual(uint32_t chunk) = 0;

 protected:
  // The stream (common/random.h) that a codec draws from: what is rounded at random depends on the job's seed, the
  // worker, the step and the chunk alone.
  static uint64_t Draws(uint32_t worker, uint32_t chunk, int64_t step) {
    return StreamId("push", static_cast<uint64_t>(step), uint64_t{worker} << 32 | chunk);
  }
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_GRADIENT_ENCODER_H_
