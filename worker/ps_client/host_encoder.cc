#include "worker/ps_client/host_encoder.h"

#include "common/table_keys.h"

namespace rubato::worker {
namespace {

// A buffer that servers on this host can read, as long as there is room for it.
FloatBuffer::Ptr AllocateShared(const std::shared_ptr<SharedArena>& arena, int64_t size) {
  void* memory = arena == nullptr ? nullptr : arena->Allocate(size * sizeof(float));
  return memory == nullptr ? FloatBuffer::Allocate(size) : FloatBuffer::Wrap(static_cast<float*>(memory), size, arena);
}

}  // namespace

HostEncoder::HostEncoder(const v1::JobDescription& job, const Options& options)
    : seed_(options.seed), worker_(options.worker) {
  for (const v1::ChunkPlacement& placement : job.chunks()) {
    if (IsShard(placement)) break;
    Chunk& chunk = chunks_.emplace_back();
    chunk.codec = options.codecs[placement.tensor()];
    chunk.elements = static_cast<int64_t>(placement.length());
    if (chunk.codec.codec == v1::NONE) continue;
    chunk.bytes = AllocateShared(options.arena, MaxEncodedWords(chunk.codec, chunk.elements));
    if (HasResidual(chunk.codec.codec)) chunk.residual.assign(chunk.elements, 0);
  }
}

void HostEncoder::EncodeChunk(uint32_t index, float* gradient, int64_t step, bool compress) {
  Chunk& chunk = chunks_[index];
  chunk.compressed = compress;
  if (chunk.codec.codec == v1::NONE) return;
  if (!compress) return MoveResidual(&chunk.residual, gradient);
  chunk.size = Encode(chunk.codec, gradient, chunk.elements, chunk.residual.empty() ? nullptr : chunk.residual.data(),
                      seed_, Draws(worker_, index, step), reinterpret_cast<uint8_t*>(chunk.bytes->data()));
}

absl::Span<const uint8_t> HostEncoder::Encoded(uint32_t index) const {
  const Chunk& chunk = chunks_[index];
  return {reinterpret_cast<const uint8_t*>(chunk.bytes->data()), static_cast<size_t>(chunk.size)};
}

}  // namespace rubato::worker
