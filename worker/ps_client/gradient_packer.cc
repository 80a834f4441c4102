#include "worker/ps_client/gradient_packer.h"

#include "common/random.h"

namespace rubato::worker {
namespace {

// A buffer that servers on this host can read, as long as there is room for it.
FloatBuffer::Ptr AllocateShared(const std::shared_ptr<SharedArena>& arena, int64_t size) {
  void* memory = arena == nullptr ? nullptr : arena->Allocate(size * sizeof(float));
  return memory == nullptr ? FloatBuffer::Allocate(size) : FloatBuffer::Wrap(static_cast<float*>(memory), size, arena);
}

}  // namespace

GradientPacker::GradientPacker(const v1::JobDescription* job, const Options& options)
    : job_(job), seed_(options.seed), worker_(options.worker), chunks_(job->chunks_size()) {
  if (options.codecs.empty()) return;
  for (size_t index = 0; index < chunks_.size(); ++index) {
    const v1::ChunkPlacement& placement = job->chunks(static_cast<int>(index));
    Chunk& chunk = chunks_[index];
    chunk.codec = options.codecs[placement.tensor()];
    if (chunk.codec.codec == v1::NONE) continue;
    chunk.bytes = AllocateShared(options.arena, (MaxEncodedBytes(chunk.codec, placement.length()) + 3) / 4);
    if (HasResidual(chunk.codec.codec)) chunk.residual.assign(placement.length(), 0);
  }
}

void GradientPacker::Pack(uint32_t index, const float* gradient, int64_t step) {
  Chunk& chunk = chunks_[index];
  if (chunk.codec.codec == v1::NONE) return;
  const uint64_t stream = StreamId("push", step, uint64_t{worker_} << 32 | index);
  chunk.size = Encode(chunk.codec, gradient, job_->chunks(index).length(),
                      chunk.residual.empty() ? nullptr : chunk.residual.data(), seed_, stream,
                      reinterpret_cast<uint8_t*>(chunk.bytes->data()));
}

std::pair<const void*, uint64_t> GradientPacker::Bytes(uint32_t index, const float* gradient) const {
  const Chunk& chunk = chunks_[index];
  if (chunk.codec.codec != v1::NONE) return {chunk.bytes->data(), chunk.size};
  return {gradient, job_->chunks(index).length() * sizeof(float)};
}

}  // namespace rubato::worker
