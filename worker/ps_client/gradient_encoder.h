#ifndef RUBATO_WORKER_PS_CLIENT_GRADIENT_ENCODER_H_
#define RUBATO_WORKER_PS_CLIENT_GRADIENT_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/random.h"
#include "kernels/codec/codec.h"
#include "kernels/optimizer/all_finite.h"

namespace rubato::worker {

// What is sent of a worker's gradients instead of them, made by their tensors' codecs, whose error feedback is kept
// here. Chunks are independent of each other: a chunk's EncodeChunk excludes its other calls, and nothing else.
//
//   encoder->EncodeChunk(chunk, gradient, step, !plan.uncompressed());
//   // Until the next EncodeChunk: the gradient is sent as it is if the codec is NONE.
//   if (encoder->codec(chunk) != v1::NONE) encoded = encoder->Encoded(chunk);
class GradientEncoder {
 public:
  virtual ~GradientEncoder() = default;

  // Of what EncodeChunk did last; before, of the tensor. NONE: the chunk's gradient is sent as it is.
  virtual v1::Codec codec(uint32_t chunk) const = 0;
  // Encodes the chunk's gradient of the step, if that is not done already. Without `compress` it is to be sent as it
  // is: what error feedback has kept is added to it, and kept no more, if all elements are finite.
  virtual void EncodeChunk(uint32_t chunk, float* gradient, int64_t step, bool compress) = 0;
  // What was encoded last. REQUIRES: codec(chunk) is not NONE.
  virtual absl::Span<const uint8_t> Encoded(uint32_t chunk) const = 0;
  // The error-feedback residual, an element each; empty for codecs without it. To be used while nothing is encoded.
  virtual std::vector<float>* residual(uint32_t chunk) = 0;

 protected:
  // The stream (common/random.h) that a codec draws from: what is rounded at random depends on the job's seed, the
  // worker, the step and the chunk alone.
  static uint64_t Draws(uint32_t worker, uint32_t chunk, int64_t step) {
    return StreamId("push", static_cast<uint64_t>(step), uint64_t{worker} << 32 | chunk);
  }

  // EncodeChunk of a chunk that is not compressed; does nothing if there is no residual.
  static void MoveResidual(std::vector<float>* residual, float* gradient) {
    if (!AllFinite(gradient, static_cast<int64_t>(residual->size()))) return;
    for (size_t i = 0; i < residual->size(); ++i) gradient[i] += std::exchange((*residual)[i], 0.0f);
  }
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_GRADIENT_ENCODER_H_
