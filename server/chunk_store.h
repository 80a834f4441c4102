#ifndef RUBATO_SERVER_CHUNK_STORE_H_
#define RUBATO_SERVER_CHUNK_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/float_buffer.h"
#include "common/gradient_noise/gradient_meter.h"
#include "common/model_spec.h"
#include "common/storage/checkpoint_restorer.h"
#include "kernels/codec/codec.h"
#include "kernels/optimizer/compensation.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/update_rule.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "server/chunk_snapshot.h"
#include "server/pulled_weights.h"
#include "server/rules/by_chunk.h"
#include "server/rules/chunk_rules.h"
#include "server/rules/update_mix.h"
#include "server/slot_pool.h"
#include "server/spare_buffers.h"

namespace rubato::server {

// The weights and optimizer state of one partition's chunks. Not thread-safe: used by whoever is at work on the
// partition. The buffers that it hands out may be read anywhere and are never written again while somebody else holds
// them.
class ChunkStore {
 public:
  struct Chunk {
    v1::ChunkPlacement placement;
    TensorSpec tensor;
    // The current weights. Held by readers, too: an update then writes to another buffer.
    FloatBuffer::Ptr weights;
    // The optimizer's state, and after it that of a compensation for staleness; the pool's. Held by a snapshot, too: an
    // update then writes to others.
    std::vector<FloatBuffer::Ptr> slots;
    // Updates that changed the weights: the t of Adam's bias correction.
    int64_t updates = 0;
    // Those of them that a compensation formula has gone through.
    int64_t compensated = 0;
    // Empty unless a compensation reads it.
    PulledWeights pulled;
    // Buffers that were weights before; reused once nobody reads them, because an allocator may take nothing back.
    SpareBuffers spares;
    // How pulls carry it, the weights as they were encoded last, and their version.
    CodecSpec pull_codec;
    FloatBuffer::Ptr encoded;
    SpareBuffers encoded_spares;
    int64_t encoded_bytes = 0;
    int64_t encoded_version = -1;
  };

  // What a pull carries: `bytes` at the start of the buffer, which nobody writes as long as somebody else holds it.
  struct Wire {
    v1::Codec codec = v1::NONE;
    FloatBuffer::Ptr buffer;
    int64_t bytes = 0;
  };

  // Makes buffers that are handed out; zeros.
  using Allocator = std::function<FloatBuffer::Ptr(int64_t size)>;

  // Initialises `chunks` (indices into job.chunks) from the config's seed. `slots` may be other stores', too.
  ChunkStore(const v1::JobConfig& config, const ModelSpec& model, const v1::JobDescription& job,
             const std::vector<uint32_t>& chunks, Allocator allocate = FloatBuffer::Allocate,
             std::shared_ptr<SlotPool> slots = SlotPool::Create());

  // Has `restorer` write over what the constructor made, a slice for each of these chunks in their order: values, slots
  // and, in FinishRestore, updates. Returns the first one's position among the restorer's slices. Nothing else may be
  // called in between, and the store is of no use if the restorer fails.
  size_t BeginRestore(const std::vector<uint32_t>& chunks, CheckpointRestorer* restorer);
  void FinishRestore(const std::vector<uint32_t>& chunks, const CheckpointRestorer& restorer, size_t first);

  // The example-weighted mean of the contributions, reduced in their order, goes through the optimizer. Contributions
  // without examples are left out; if none is left the weights stay as they are, or are zeros with MEAN.
  // Hyperparameters are those of the first contribution that says something of the tensor's group, the job's if none
  // does. Returns whether another one says something else.
  bool Apply(const ChunkRules::Update& update);

  // The chunk's initial weights: float32, in pieces that are as long as it is together. Before its first update.
  // `updates`: its slots were assigned, and stand for so many; nothing: they are as the job's optimizer begins.
  void Assign(uint32_t chunk, const EncodedGradient& weights, std::optional<int64_t> updates = std::nullopt);
  // What the optimizer keeps of it, in the same form. The slot exists.
  void AssignSlot(uint32_t chunk, uint32_t slot, const EncodedGradient& values);

  // Whether NotePulled and KeepPulledOf are to be called.
  bool keeps_pulled() const { return compensation_.has_value() && ReadsPulledWeights(*compensation_); }
  // The worker was given the chunk's weights, which are at `version`; `may_be_stale`: its push will be one of SSP or
  // ASYNC.
  void NotePulled(uint32_t chunk, const v1::TaskId& worker, int64_t version, bool may_be_stale);
  // Workers that are no members of the plan push nothing more.
  void KeepPulledOf(const v1::Plan& plan);

  bool is_mean() const { return optimizer_.algorithm() == v1::OptimizerConfig::MEAN; }

  // The chunk's weights, which are at `version`, as its pull codec encodes them: once per version.
  Wire ForWire(uint32_t chunk, int64_t version);

  const Chunk& Get(uint32_t chunk) const { return chunks_.at(chunk); }
  // The chunk as it is. `record` lacks its version and watermarks, of which the store does not know.
  ChunkSnapshot Keep(uint32_t chunk) const;
  // Of all but the slots.
  int64_t memory_bytes() const { return memory_bytes_; }
  const v1::GradientMoments& gradient_moments() const { return gradient_meter_.moments(); }

 private:
  // What the gradients say of each other, if the step is one that is measured.
  void Measure(uint32_t chunk, const UpdateMix& mix, const std::vector<EncodedGradient>& gradients);
  // The rate of the schedule's point that the update is at, and the rule of the job or of what was pushed.
  UpdateRule RuleOf(const ChunkRules::Update& update, const UpdateMix& mix, Chunk& chunk) const;
  // As Apply, of one push that may be stale, with the job's compensation.
  void ApplyCompensated(const UpdateRule& rule, const ChunkRules::Update& update, Chunk& chunk);
  // What an update reads, and what it writes.
  struct Buffers {
    FloatBuffer::Ptr weights_in, weights_out;
    std::vector<const float*> slots_in;
    std::vector<float*> slots_out;
    // Of each slot, the array that is read and not written; null: it is written where it is.
    std::vector<FloatBuffer::Ptr> kept_slots;
  };
  // With the first `slots` slots.
  Buffers NextBuffers(Chunk& chunk, size_t slots);
  FloatBuffer::Ptr Allocate(int64_t size);
  // What updates write to while a checkpoint is being written: a job that begins has that memory, and training does not
  // wait for the system to clear it.
  void ReserveForCheckpoints();
  // A buffer as long as `held`, which somebody reads and which goes to the spares.
  FloatBuffer::Ptr Exchange(const FloatBuffer::Ptr& held, SpareBuffers& spares);

  const v1::OptimizerConfig optimizer_;
  const v1::CompensationConfig compensation_config_;
  const std::optional<CompensationFormula> compensation_;
  // With local SGD the workers have done so: what they push are weights' moves.
  const bool applies_learning_rate_scale_;
  // Whose learning rate it is that updates of fewer contributions take less of: the workers' with local SGD.
  const v1::OptimizerConfig::Algorithm rate_of_;
  const int64_t batch_size_;
  const uint64_t seed_;
  const Allocator allocate_;
  const std::shared_ptr<SlotPool> slots_;
  ByChunk<Chunk> chunks_;
  int64_t memory_bytes_ = 0;
  GradientMeter gradient_meter_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_CHUNK_STORE_H_
