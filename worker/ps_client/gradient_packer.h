#ifndef RUBATO_WORKER_PS_CLIENT_GRADIENT_PACKER_H_
#define RUBATO_WORKER_PS_CLIENT_GRADIENT_PACKER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/float_buffer.h"
#include "common/shared_memory/arena.h"
#include "kernels/codec/codec.h"
#include "proto/coordinator.pb.h"

namespace rubato::worker {

// How a worker's gradients are sent: as they are, or packed by their tensor's codec, whose error feedback is kept here.
// Chunks are independent of each other: a chunk's Pack excludes its other calls, and nothing else.
//
//   packer.Pack(chunk, gradient, step);
//   const auto [data, bytes] = packer.Bytes(chunk, gradient);   // until the next Pack
class GradientPacker {
 public:
  struct Options {
    // By tensor; empty: nothing is packed.
    std::vector<CodecSpec> codecs;
    // Of the job, and the worker's index: what is rounded at random depends on them, the step and the chunk alone.
    uint64_t seed = 0;
    uint32_t worker = 0;
    // Holds what is packed, as long as there is room, so that servers on this host can read it there. Null: there is
    // none.
    std::shared_ptr<SharedArena> arena;
  };

  // `job` outlives it.
  GradientPacker(const v1::JobDescription* job, const Options& options);

  // NONE: it is sent as it is.
  v1::Codec codec(uint32_t chunk) const { return chunks_[chunk].codec.codec; }
  // Packs the chunk's gradient, of placement.length elements; does nothing where the codec is NONE.
  void Pack(uint32_t chunk, const float* gradient, int64_t step);
  // What error feedback keeps back, an element each; empty for codecs without it.
  std::vector<float>* residual(uint32_t chunk) { return &chunks_[chunk].residual; }
  // What is sent, and how many bytes: what was packed last, or `gradient` itself where the codec is NONE.
  std::pair<const void*, uint64_t> Bytes(uint32_t chunk, const float* gradient) const;

 private:
  struct Chunk {
    CodecSpec codec;
    std::shared_ptr<FloatBuffer> bytes;
    int64_t size = 0;  // Used of it.
    std::vector<float> residual;
  };

  const v1::JobDescription* const job_;
  const uint64_t seed_;
  const uint32_t worker_;
  std::vector<Chunk> chunks_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_GRADIENT_PACKER_H_
