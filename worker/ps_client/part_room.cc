#include "worker/ps_client/part_room.h"

#include <cstdint>
#include <vector>

#include "common/table_keys.h"

namespace rubato::worker {

WorkerPart MakePartRoom(const v1::JobDescription& job, const ModelSpec& spec, GradientEncoder* encoder, int slots) {
  WorkerPart part;
  for (int index = 0; index < job.chunks_size(); ++index) {
    if (IsShard(job.chunks(index))) break;
    const size_t kept = encoder->residual(static_cast<uint32_t>(index))->size();
    if (kept == 0 && slots == 0) continue;
    const v1::ChunkPlacement& placement = job.chunks(index);
    const TensorSpec& tensor = spec.tensors[placement.tensor()];
    WorkerPart::Chunk& chunk = part.chunks.emplace_back();
    chunk.record.set_chunk(static_cast<uint32_t>(index));
    chunk.record.set_tensor(tensor.name);
    for (int64_t dimension : tensor.shape) chunk.record.add_shape(dimension);
    chunk.record.set_offset(placement.offset());
    chunk.record.set_length(placement.length());
    chunk.residual.resize(kept);
    chunk.slots.assign(static_cast<size_t>(slots), std::vector<float>(static_cast<size_t>(placement.length())));
  }
  return part;
}

WorkerPart CopyResiduals(const v1::JobDescription& job, const ModelSpec& spec, GradientEncoder* encoder) {
  WorkerPart part = MakePartRoom(job, spec, encoder, 0);
  for (WorkerPart::Chunk& chunk : part.chunks) chunk.residual = *encoder->residual(chunk.record.chunk());
  return part;
}

void PutResiduals(const WorkerPart& part, GradientEncoder* encoder) {
  for (const WorkerPart::Chunk& chunk : part.chunks) *encoder->residual(chunk.record.chunk()) = chunk.residual;
}

}  // namespace rubato::worker
