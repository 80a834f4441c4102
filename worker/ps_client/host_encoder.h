#ifndef RUBATO_WORKER_PS_CLIENT_HOST_ENCODER_H_
#define RUBATO_WORKER_PS_CLIENT_HOST_ENCODER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/float_buffer.h"
#include "common/shared_memory/arena.h"
#include "proto/coordinator.pb.h"
#include "worker/ps_client/gradient_encoder.h"

namespace rubato::worker {

// Encodes gradients that are in the host's memory.
class HostEncoder : public GradientEncoder {
 public:
  struct Options {
    // By tensor.
    std::vector<CodecSpec> codecs;
    // Of the job, and the worker's index.
    uint64_t seed = 0;
    uint32_t worker = 0;
    // Holds what is encoded, as long as there is room, so that servers on this host can read it there. Null: there is
    // none.
    std::shared_ptr<SharedArena> arena;
  };

  HostEncoder(const v1::JobDescription& job, const Options& options);

  v1::Codec codec(uint32_t chunk) const override {
    return chunks_[chunk].compressed ? chunks_[chunk].codec.codec : v1::NONE;
  }
  void EncodeChunk(uint32_t chunk, float* gradient, int64_t step, bool compress) override;
  absl::Span<const uint8_t> Encoded(uint32_t chunk) const override;
  std::vector<float>* residual(uint32_t chunk) override { return &chunks_[chunk].residual; }

 private:
  struct Chunk {
    CodecSpec codec;
    int64_t elements = 0;
    std::shared_ptr<FloatBuffer> bytes;
    int64_t size = 0;  // Used of it.
    bool compressed = true;
    std::vector<float> residual;
  };

  const uint64_t seed_;
  const uint32_t worker_;
  std::vector<Chunk> chunks_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_HOST_ENCODER_H_
