#include "server/chunk_store.h"

#include <algorithm>
#include <utility>

#include "common/config/compression.h"
#include "common/config/local_sgd.h"
#include "common/random.h"
#include "common/status.h"
#include "common/storage/checkpoint_restorer.h"
#include "common/storage/safetensors_file.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/initializer.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/schedule.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato::server {

ChunkStore::ChunkStore(const v1::JobConfig& config, const ModelSpec& model, const v1::JobDescription& job,
                       const std::vector<uint32_t>& chunks, Allocator allocate)
    : optimizer_(ServerOptimizer(config)),
      applies_learning_rate_scale_(BatchesPerStep(config) == 1),
      seed_(config.seed()),
      allocate_(std::move(allocate)) {
  for (uint32_t index : chunks) {
    Chunk chunk;
    chunk.placement = job.chunks(index);
    chunk.tensor = model.tensors[chunk.placement.tensor()];
    const int64_t length = chunk.placement.length();
    const v1::CodecConfig codec = PullCodec(config, chunk.tensor.name);
    chunk.pull_codec = {codec.codec(), codec.fraction()};
    chunk.weights = allocate_(length);
    InitializeSlice(chunk.tensor, chunk.placement.tensor(), config.seed(), chunk.placement.offset(), length,
                    chunk.weights->data());
    for (int slot = 0; slot < NumSlots(optimizer_.algorithm()); ++slot) {
      chunk.slots.push_back(FloatBuffer::Allocate(length));
      std::fill_n(chunk.slots.back()->data(), length, InitialSlotValue(optimizer_, slot));
    }
    memory_bytes_ += length * sizeof(float) * (1 + chunk.slots.size());
    chunks_.emplace(index, std::move(chunk));
  }
}

absl::Status ChunkStore::Restore(const std::string& path) {
  CheckpointRestorer restorer;
  std::vector<Chunk*> chunks;
  for (auto& [index, chunk] : chunks_) {
    CheckpointRestorer::Slice slice;
    slice.tensor = chunk.tensor.name;
    slice.shape = chunk.tensor.shape;
    slice.offset = chunk.placement.offset();
    slice.length = chunk.placement.length();
    slice.values = chunk.weights->data();
    for (const FloatBuffer::Ptr& slot : chunk.slots) slice.slots.push_back(slot->data());
    restorer.Add(std::move(slice));
    chunks.push_back(&chunk);
  }
  RUBATO_RETURN_IF_ERROR(IsSafetensorsPath(path) ? restorer.ReadSafetensors(path) : restorer.ReadServers(path));
  for (size_t i = 0; i < chunks.size(); ++i) chunks[i]->updates = restorer.slices()[i].updates;
  return absl::OkStatus();
}

FloatBuffer::Ptr ChunkStore::Allocate(int64_t size) {
  memory_bytes_ += size * static_cast<int64_t>(sizeof(float));
  return allocate_(size);
}

FloatBuffer::Ptr ChunkStore::Exchange(const FloatBuffer::Ptr& held, std::vector<FloatBuffer::Ptr>& spares) {
  for (FloatBuffer::Ptr& spare : spares) {
    if (spare.use_count() == 1) return std::exchange(spare, held);
  }
  spares.push_back(held);
  return Allocate(held->size());
}

ChunkStore::Wire ChunkStore::ForWire(uint32_t index, int64_t version) {
  Chunk& chunk = chunks_.at(index);
  const int64_t length = chunk.placement.length();
  if (chunk.pull_codec.codec == v1::NONE) {
    return {v1::NONE, chunk.weights, length * static_cast<int64_t>(sizeof(float))};
  }
  if (chunk.encoded_version != version) {
    if (chunk.encoded == nullptr) {
      chunk.encoded = Allocate((MaxEncodedBytes(chunk.pull_codec, length) + 3) / 4);
    } else if (chunk.encoded.use_count() > 1) {
      chunk.encoded = Exchange(chunk.encoded, chunk.encoded_spares);
    }
    // The same bytes for whoever asks for this version, on every run.
    const uint64_t stream =
        StreamId("pull", static_cast<uint64_t>(chunk.placement.tensor()) << 40 ^ chunk.placement.offset(), version);
    chunk.encoded_bytes = Encode(chunk.pull_codec, chunk.weights->data(), length, nullptr, seed_, stream,
                                 reinterpret_cast<uint8_t*>(chunk.encoded->data()));
    chunk.encoded_version = version;
  }
  return {chunk.pull_codec.codec, chunk.encoded, chunk.encoded_bytes};
}

void ChunkStore::Apply(const ChunkRules::Update& update) {
  Chunk& chunk = chunks_.at(update.chunk);
  uint64_t examples = 0;
  for (const Contribution& contribution : update.contributions) examples += contribution.examples;
  if (examples == 0) return;

  std::vector<EncodedGradient> gradients;
  for (const Contribution& contribution : update.contributions) {
    if (contribution.examples == 0) continue;
    const double weight = static_cast<double>(contribution.examples) / static_cast<double>(examples);
    gradients.push_back(*contribution.gradient);
    gradients.back().weight = static_cast<float>(weight);
  }
  const Contribution& first = update.contributions.front();
  const double scale = applies_learning_rate_scale_ ? update.learning_rate_scale : 1;
  const double learning_rate =
      optimizer_.learning_rate() * scale * ScheduleFactor(optimizer_.schedule(), first.epoch, first.step);
  const UpdateRule rule = MakeUpdateRule(optimizer_, learning_rate, ++chunk.updates, chunk.tensor.decays);

  // While answers with the current weights are in flight, the update goes to another buffer.
  FloatBuffer::Ptr current = chunk.weights;
  FloatBuffer::Ptr next = current.use_count() == 2 ? current : Exchange(chunk.weights, chunk.spares);
  std::vector<float*> slots;
  for (const FloatBuffer::Ptr& slot : chunk.slots) slots.push_back(slot->data());
  ReduceAndApply(rule, gradients.data(), static_cast<int>(gradients.size()), current->data(), next->data(),
                 slots.data(), chunk.placement.length());
  chunk.weights = std::move(next);
}

}  // namespace rubato::server
