#include "worker/ps_client/device_encoder.h"

#include "common/status.h"
#include "common/table_keys.h"

namespace rubato::worker {

absl::StatusOr<std::unique_ptr<DeviceEncoder>> DeviceEncoder::Create(const v1::JobDescription& job,
                                                                     const Options& options) {
  std::unique_ptr<DeviceEncoder> encoder(new DeviceEncoder(options));
  for (const v1::ChunkPlacement& placement : job.chunks()) {
    if (!IsShard(placement)) RUBATO_RETURN_IF_ERROR(encoder->Add(placement));
  }
  return encoder;
}

absl::Status DeviceEncoder::Add(const v1::ChunkPlacement& placement) {
  chunks_of_tensor_[placement.tensor()].push_back(static_cast<uint32_t>(chunks_.size()));
  Chunk& chunk = chunks_.emplace_back();
  chunk.codec = options_.codecs[placement.tensor()];
  chunk.offset = static_cast<int64_t>(placement.offset());
  chunk.elements = static_cast<int64_t>(placement.length());
  if (chunk.codec.codec == v1::NONE) return absl::OkStatus();
  Backend* backend = options_.backend;
  const int64_t words = MaxEncodedWords(chunk.codec, chunk.elements);
  RUBATO_ASSIGN_OR_RETURN(chunk.encoded, backend->Allocate({words}, ElementType::kInt32));
  RUBATO_ASSIGN_OR_RETURN(chunk.bytes, backend->AllocateHostForSending(words * ElementBytes(ElementType::kInt32)));
  if (!HasResidual(chunk.codec.codec)) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(chunk.device_residual, backend->Allocate({chunk.elements}));
  chunk.residual.assign(chunk.elements, 0);
  return absl::OkStatus();
}

absl::Status DeviceEncoder::Enqueue(int tensor, int64_t step) {
  for (uint32_t index : chunks_of_tensor_[tensor]) {
    const Chunk& chunk = chunks_[index];
    RUBATO_RETURN_IF_ERROR(options_.backend->Encode({.codec = chunk.codec,
                                                     .offset = chunk.offset,
                                                     .count = chunk.elements,
                                                     .seed = options_.seed,
                                                     .stream = Draws(options_.worker, index, step)},
                                                    options_.model->gradient(tensor), chunk.device_residual,
                                                    chunk.encoded));
    RUBATO_RETURN_IF_ERROR(options_.backend->CopyToHost(chunk.encoded, 0, chunk.encoded.elements(), chunk.bytes.get()));
  }
  return absl::OkStatus();
}

void DeviceEncoder::EncodeChunk(uint32_t index, float* gradient, int64_t /*step*/, bool compress) {
  chunks_[index].compressed = compress;
  if (!compress) MoveResidual(&chunks_[index].residual, gradient);
}

absl::Status DeviceEncoder::UseResiduals() {
  residuals_on_host_ = false;
  for (const Chunk& chunk : chunks_) {
    if (chunk.device_residual.empty()) continue;
    RUBATO_RETURN_IF_ERROR(
        options_.backend->CopyToDevice(chunk.device_residual, 0, chunk.elements, chunk.residual.data()));
  }
  return options_.backend->Synchronize();
}

absl::Status DeviceEncoder::KeepResidualsOnHost() {
  RUBATO_RETURN_IF_ERROR(FetchResiduals());
  residuals_on_host_ = true;
  return absl::OkStatus();
}

absl::Status DeviceEncoder::FetchResiduals() {
  if (residuals_on_host_) return absl::OkStatus();
  for (Chunk& chunk : chunks_) {
    if (chunk.device_residual.empty()) continue;
    RUBATO_RETURN_IF_ERROR(
        options_.backend->CopyToHost(chunk.device_residual, 0, chunk.elements, chunk.residual.data()));
  }
  return options_.backend->Synchronize();
}

absl::Span<const uint8_t> DeviceEncoder::Encoded(uint32_t index) const {
  const Chunk& chunk = chunks_[index];
  return {static_cast<const uint8_t*>(chunk.bytes.get()),
          static_cast<size_t>(MaxEncodedBytes(chunk.codec, chunk.elements))};
}

}  // namespace rubato::worker
