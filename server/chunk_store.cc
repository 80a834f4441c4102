#include "server/chunk_store.h"

#include <algorithm>
#include <utility>

#include "kernels/optimizer/initializer.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/schedule.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato::server {

ChunkStore::ChunkStore(const v1::JobConfig& config, const ModelSpec& model, const v1::JobDescription& job,
                       const std::vector<uint32_t>& chunks)
    : optimizer_(config.optimizer()) {
  for (uint32_t index : chunks) {
    Chunk chunk;
    chunk.placement = job.chunks(index);
    chunk.tensor = model.tensors[chunk.placement.tensor()];
    const int64_t length = chunk.placement.length();
    chunk.weights = FloatBuffer::Allocate(length);
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

FloatBuffer::Ptr ChunkStore::TakeSpare(Chunk& chunk) {
  for (FloatBuffer::Ptr& spare : chunk.spares) {
    if (spare.use_count() == 1) return std::exchange(spare, chunk.weights);
  }
  chunk.spares.push_back(chunk.weights);
  memory_bytes_ += chunk.weights->size() * sizeof(float);
  return FloatBuffer::Allocate(chunk.weights->size());
}

void ChunkStore::Apply(const ChunkRules::Update& update) {
  Chunk& chunk = chunks_.at(update.chunk);
  uint64_t examples = 0;
  for (const Contribution& contribution : update.contributions) examples += contribution.examples;
  if (examples == 0) return;

  std::vector<GradientSpan> gradients;
  for (const Contribution& contribution : update.contributions) {
    if (contribution.examples == 0) continue;
    gradients.push_back({contribution.gradient.data, static_cast<float>(static_cast<double>(contribution.examples) /
                                                                        static_cast<double>(examples))});
  }
  const Contribution& first = update.contributions.front();
  const double learning_rate = optimizer_.learning_rate() * update.learning_rate_scale *
                               ScheduleFactor(optimizer_.schedule(), first.epoch, first.step);
  const UpdateRule rule = MakeUpdateRule(optimizer_, learning_rate, ++chunk.updates, chunk.tensor.decays);

  // While answers with the current weights are on their way, the update goes to another buffer.
  FloatBuffer::Ptr current = chunk.weights;
  FloatBuffer::Ptr next = current.use_count() == 2 ? current : TakeSpare(chunk);
  std::vector<float*> slots;
  for (const FloatBuffer::Ptr& slot : chunk.slots) slots.push_back(slot->data());
  ReduceAndApply(rule, gradients.data(), static_cast<int>(gradients.size()), current->data(), next->data(),
                 slots.data(), chunk.placement.length());
  chunk.weights = std::move(next);
}

}  // namespace rubato::server
