#include "server/chunk_store.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "common/array_alignment.h"
#include "common/byte_span.h"
#include "common/config/compression.h"
#include "common/config/local_sgd.h"
#include "common/learning_rate_schedule.h"
#include "common/optimizer_traits.h"
#include "common/random.h"
#include "kernels/optimizer/compensate_and_apply.h"
#include "kernels/optimizer/gradient_norms.h"
#include "kernels/optimizer/initializer.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/trust_ratio.h"

namespace rubato::server {
namespace {

// Up to that much a partition has a second array for every slot, and its updates never wait for the disk.
constexpr int64_t kFewSlotBytes = int64_t{64} << 20;

int64_t BytesIn(int64_t length) { return length * static_cast<int64_t>(sizeof(float)); }

void CopyPieces(const EncodedGradient& from, float* values) {
  auto* to = reinterpret_cast<uint8_t*>(values);
  for (const ByteSpan& piece : from.pieces) to = std::copy(piece.begin(), piece.end(), to);
}

}  // namespace

ChunkStore::ChunkStore(const v1::JobConfig& config, const ModelSpec& model, const v1::JobDescription& job,
                       const std::vector<uint32_t>& chunks, Allocator allocate, std::shared_ptr<SlotPool> slots)
    : optimizer_(ServerOptimizer(config)),
      compensation_config_(config.consistency().compensation()),
      compensation_(CompensationFormulaOf(compensation_config_)),
      applies_learning_rate_scale_(!TrainsLocally(config)),
      rate_of_(config.optimizer().algorithm()),
      batch_size_(config.training().batch_size()),
      seed_(config.seed()),
      allocate_(std::move(allocate)),
      slots_(std::move(slots)),
      gradient_meter_(chunks.size()) {
  const int num_slots = NumSlots(optimizer_.algorithm()) + (compensation_ ? NumSlots(*compensation_) : 0);
  for (uint32_t index : chunks) {
    Chunk chunk;
    chunk.placement = job.chunks(index);
    chunk.tensor = model.tensors[chunk.placement.tensor()];
    const int64_t length = chunk.placement.length();
    const v1::CodecConfig codec = PullCodec(config, chunk.tensor.name);
    chunk.pull_codec = {codec.codec(), codec.fraction()};
    chunk.weights = Allocate(length);
    InitializeSlice(chunk.tensor, chunk.placement.tensor(), config.seed(), chunk.placement.offset(), length,
                    chunk.weights->data());
    for (int slot = 0; slot < num_slots; ++slot) {
      chunk.slots.push_back(slots_->Take(length));
      std::fill_n(chunk.slots.back()->data(), length, InitialSlotValue(optimizer_, slot));
    }
    chunks_.Add(index, std::move(chunk));
  }
  if (config.checkpoint().every_steps() > 0 || config.checkpoint().every_seconds() > 0) ReserveForCheckpoints();
}

size_t ChunkStore::BeginRestore(const std::vector<uint32_t>& chunks, CheckpointRestorer* restorer) {
  const size_t first = restorer->slices().size();
  for (uint32_t index : chunks) {
    Chunk& chunk = chunks_.at(index);
    CheckpointRestorer::Slice slice;
    slice.tensor = chunk.tensor.name;
    slice.shape = chunk.tensor.shape;
    slice.offset = chunk.placement.offset();
    slice.length = chunk.placement.length();
    slice.values = chunk.weights->data();
    for (const FloatBuffer::Ptr& slot : chunk.slots) slice.slots.push_back(slot->data());
    restorer->Add(std::move(slice));
  }
  return first;
}

void ChunkStore::FinishRestore(const std::vector<uint32_t>& chunks, const CheckpointRestorer& restorer, size_t first) {
  for (size_t i = 0; i < chunks.size(); ++i) {
    Chunk& chunk = chunks_.at(chunks[i]);
    chunk.updates = restorer.slices()[first + i].updates;
    chunk.compensated = restorer.slices()[first + i].compensated;
  }
}

ChunkSnapshot ChunkStore::Keep(uint32_t index) const {
  const Chunk& chunk = Get(index);
  ChunkSnapshot snapshot;
  snapshot.record.set_chunk(index);
  snapshot.record.set_tensor(chunk.tensor.name);
  for (int64_t dimension : chunk.tensor.shape) snapshot.record.add_shape(dimension);
  snapshot.record.set_offset(chunk.placement.offset());
  snapshot.record.set_length(chunk.placement.length());
  snapshot.record.set_updates(chunk.updates);
  snapshot.record.set_compensated(chunk.compensated);
  snapshot.weights = chunk.weights;
  snapshot.slots = chunk.slots;
  return snapshot;
}

FloatBuffer::Ptr ChunkStore::Allocate(int64_t size) {
  memory_bytes_ += BytesIn(size);
  return allocate_(size);
}

void ChunkStore::ReserveForCheckpoints() {
  std::map<int64_t, int64_t> arrays;  // Slots of each size.
  int64_t slot_bytes = 0;
  for (Chunk& chunk : chunks_) {
    const int64_t length = chunk.placement.length();
    chunk.spares.Add(Allocate(length));
    const auto num_slots = static_cast<int64_t>(chunk.slots.size());
    arrays[length] += num_slots;
    slot_bytes += num_slots * BytesIn(length);
  }
  for (const auto& [length, count] : arrays) {
    const bool all = slot_bytes <= kFewSlotBytes || BytesIn(length) < static_cast<int64_t>(kLargeArrayBytes);
    slots_->Reserve(length, all ? count : (count + 1) / 2);
  }
}

FloatBuffer::Ptr ChunkStore::Exchange(const FloatBuffer::Ptr& held, SpareBuffers& spares) {
  FloatBuffer::Ptr free = spares.Exchange(held);
  return free == nullptr ? Allocate(held->size()) : free;
}

ChunkStore::Wire ChunkStore::ForWire(uint32_t index, int64_t version) {
  Chunk& chunk = chunks_.at(index);
  const int64_t length = chunk.placement.length();
  if (chunk.pull_codec.codec == v1::NONE) {
    return {v1::NONE, chunk.weights, BytesIn(length)};
  }
  if (chunk.encoded_version != version) {
    if (chunk.encoded == nullptr) {
      chunk.encoded = Allocate(MaxEncodedWords(chunk.pull_codec, length));
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

UpdateRule ChunkStore::RuleOf(const ChunkRules::Update& update, const UpdateMix& mix, Chunk& chunk) const {
  // One without examples does not know where in the training it is.
  const Contribution& first = mix.parts.empty() ? update.contributions.front() : *mix.parts.front().contribution;
  const v1::OptimizerConfig* const pushed = mix.hyperparameters;
  const double scale = applies_learning_rate_scale_ ? update.learning_rate_scale : 1;
  const v1::OptimizerConfig& optimizer = pushed == nullptr ? optimizer_ : *pushed;
  double learning_rate = optimizer.learning_rate() * scale;
  // What a push says is the rate now.
  if (pushed == nullptr)
    learning_rate *= ScheduleFactor(optimizer_.schedule(), first.header->epoch, first.header->step);
  // At the end of the data some workers have no examples left, and the others' batches are fewer than the rate is for.
  learning_rate *= LearningRateFactor(rate_of_, mix.share_with_examples);
  if (update.is_one_push && compensation_config_.has_staleness_aware()) {
    learning_rate /= static_cast<double>(std::max<int64_t>(1, update.from_version - first.base_version));
  }
  UpdateRule rule = MakeUpdateRule(optimizer, learning_rate, ++chunk.updates, chunk.tensor.decays);
  if (update.momentum && pushed == nullptr) rule.momentum = static_cast<float>(*update.momentum);
  return rule;
}

bool ChunkStore::Apply(const ChunkRules::Update& update) {
  Chunk& chunk = chunks_.at(update.chunk);
  const UpdateMix mix = MixContributions(update, {.group = chunk.tensor.group, .is_mean = is_mean()});
  if (!mix.has_effect) return false;
  std::vector<EncodedGradient> gradients;
  for (const UpdateMix::Part& part : mix.parts) {
    gradients.push_back(*part.contribution->gradient);
    gradients.back().weight = static_cast<float>(part.weight);
  }
  const UpdateRule rule = RuleOf(update, mix, chunk);
  if (compensation_.has_value() && update.is_one_push) {
    ApplyCompensated(rule, update, chunk);
    return mix.disagreement;
  }
  Measure(update.chunk, mix, gradients);
  const Buffers buffers = NextBuffers(chunk, NumSlots(rule.formula));
  const auto count = static_cast<int>(gradients.size());
  if (rule.trust_ratio == TrustRatio::kNone) {
    std::vector<uint32_t> crc32s(buffers.slots_in.size());
    ReduceAndApply(rule, gradients.data(), count, buffers.weights_in->data(), buffers.weights_out->data(),
                   buffers.slots_in.data(), buffers.slots_out.data(), chunk.placement.length(), crc32s.data());
    for (size_t slot = 0; slot < crc32s.size(); ++slot) {
      if (buffers.kept_slots[slot] != nullptr) buffers.kept_slots[slot]->NoteCrc32(crc32s[slot]);
    }
  } else {
    ApplyWithTrustRatio(rule, gradients.data(), count, buffers.weights_in->data(), buffers.weights_out->data(),
                        buffers.slots_in.data(), buffers.slots_out.data(), chunk.placement.length());
  }
  chunk.weights = buffers.weights_out;
  return mix.disagreement;
}

void ChunkStore::Measure(uint32_t chunk, const UpdateMix& mix, const std::vector<EncodedGradient>& gradients) {
  if (gradients.size() < 2) return;
  uint64_t most = 0;
  for (const UpdateMix::Part& part : mix.parts) most = std::max(most, part.contribution->examples);
  const auto batch = static_cast<double>(batch_size_ > 0 ? batch_size_ : most);
  const int64_t batches = std::max<int64_t>(1, std::llround(static_cast<double>(most) / batch));
  const PushHeader& first = *mix.parts.front().contribution->header;
  if (!IsMeasuredStep(first.step, batches)) return;
  const GradientNorms norms = MeasureNorms(gradients.data(), static_cast<int>(gradients.size()),
                                           Get(chunk).placement.length(), StreamId("sketch", chunk));
  MeasuredUpdate measured = {.chunk = chunk, .generation = first.generation, .mean_square = norms.sum_square};
  for (size_t i = 0; i < mix.parts.size(); ++i) {
    const Contribution& contribution = *mix.parts[i].contribution;
    measured.gradients.push_back({.worker = contribution.header->task.index(),
                                  .examples = contribution.examples,
                                  .square = norms.squares[i],
                                  .sketch = norms.sketches[i]});
  }
  gradient_meter_.Add(measured);
}

void ChunkStore::ApplyCompensated(const UpdateRule& rule, const ChunkRules::Update& update, Chunk& chunk) {
  const Contribution& push = update.contributions.front();
  FloatBuffer::Ptr pulled = chunk.pulled.Take(push.header->task, push.base_version);
  // There is no gap, and the weights can be updated where they are if nobody else reads them.
  if (pulled == chunk.weights) pulled = nullptr;
  const Buffers buffers = NextBuffers(chunk, chunk.slots.size());
  CompensateAndApply(rule, MakeCompensation(compensation_config_, ++chunk.compensated), *push.gradient,
                     pulled == nullptr ? nullptr : pulled->data(), buffers.weights_in->data(),
                     buffers.weights_out->data(), buffers.slots_in.data(), buffers.slots_out.data(),
                     chunk.placement.length());
  chunk.weights = buffers.weights_out;
}

ChunkStore::Buffers ChunkStore::NextBuffers(Chunk& chunk, size_t slots) {
  Buffers buffers;
  // While answers with the current weights are in flight, the update goes to another buffer.
  buffers.weights_in = chunk.weights;
  buffers.weights_out =
      buffers.weights_in.use_count() == 2 ? buffers.weights_in : Exchange(chunk.weights, chunk.spares);
  // So do the optimizer's slots while a checkpoint with the current ones is being written.
  for (size_t i = 0; i < slots; ++i) {
    FloatBuffer::Ptr& slot = chunk.slots[i];
    buffers.slots_in.push_back(slot->data());
    if (slot.use_count() > 1) {
      FloatBuffer::Ptr free = slots_->Take(slot->size());
      // The checkpoint may let go of it while the update reads it.
      buffers.kept_slots.push_back(std::exchange(slot, std::move(free)));
    } else {
      buffers.kept_slots.push_back(nullptr);
    }
    buffers.slots_out.push_back(slot->data());
  }
  return buffers;
}

void ChunkStore::NotePulled(uint32_t index, const v1::TaskId& worker, int64_t version, bool may_be_stale) {
  Chunk& chunk = chunks_.at(index);
  if (may_be_stale) {
    chunk.pulled.Note(worker, version, chunk.weights);
  } else {
    chunk.pulled.Forget(worker);
  }
}

void ChunkStore::KeepPulledOf(const v1::Plan& plan) {
  for (Chunk& chunk : chunks_) chunk.pulled.KeepMembers(plan);
}

void ChunkStore::Assign(uint32_t index, const EncodedGradient& weights, std::optional<int64_t> updates) {
  Chunk& chunk = chunks_.at(index);
  CopyPieces(weights, chunk.weights->data());
  chunk.updates = updates.value_or(0);
  chunk.compensated = 0;
  if (updates.has_value()) return;
  for (size_t slot = 0; slot < chunk.slots.size(); ++slot) {
    std::fill_n(chunk.slots[slot]->data(), chunk.slots[slot]->size(),
                InitialSlotValue(optimizer_, static_cast<int>(slot)));
  }
}

void ChunkStore::AssignSlot(uint32_t index, uint32_t slot, const EncodedGradient& values) {
  CopyPieces(values, chunks_.at(index).slots[slot]->data());
}

}  // namespace rubato::server
