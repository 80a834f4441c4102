#include "kernels/optimizer/reduce_and_apply.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "common/streaming_copy.h"
#include "kernels/optimizer/gradient_reader.h"
#include "kernels/optimizer/reduce_loops.h"
#include "kernels/optimizer/update_loops.h"

namespace rubato {
namespace {

// One call of ReduceAndApply.
struct Call {
  const UpdateRule& rule;
  const EncodedGradient* contributions;
  int count;
  GradientReader* readers;
  const float* weights_in;
  float* weights_out;
  const float* const* slots_in;
  float* const* slots_out;
  int slot_count;
  // Slots are written elsewhere than they are read.
  bool moves_slots;
  int64_t n;
  // Null, or a place for each slot.
  uint32_t* moved_crc32s;
  // One contribution, which is the gradient as it is: read where it arrived.
  bool is_alone;
};

// No formula has more.
constexpr int kMostSlots = 2;

// Slots of one block while it is worked on. Those that are written elsewhere than they are read go past the caches: the
// update that reads them next comes when caches have lost them, and their place need not be read before it is written.
struct BlockSlots {
  RUBATO_KERNEL_BODY BlockSlots(const Call& call, int64_t offset, int length) {
    for (int k = 0; k < std::min(call.slot_count, kMostSlots); ++k) {
      slots[k] = call.slots_out[k] + offset;
      if (call.slots_in[k] == call.slots_out[k]) continue;
      slots[k] = moved[k];
      std::memcpy(moved[k], call.slots_in[k] + offset, sizeof(float) * length);
      if (call.moved_crc32s == nullptr) continue;
      call.moved_crc32s[k] = libdeflate_crc32(call.moved_crc32s[k], moved[k], sizeof(float) * length);
    }
  }
  RUBATO_KERNEL_BODY void Store(const Call& call, int64_t offset, int length) const {
    for (int k = 0; k < std::min(call.slot_count, kMostSlots); ++k) {
      if (slots[k] != moved[k]) continue;
      StreamingCopy(call.slots_out[k] + offset, moved[k], sizeof(float) * length);
    }
  }

  alignas(64) float moved[kMostSlots][update_loops::kBlock];
  float* slots[kMostSlots] = {};
};

// The formula on a block, whose slots are from element `slot_offset` on.
RUBATO_KERNEL_BODY void ApplyTo(const Call& call, const UnalignedFloat* g, const float* w_in, float* w,
                                float* const* slots, int64_t slot_offset, int length) {
  if (call.weights_in == call.weights_out) {
    update_loops::ApplyBlock<true>(call.rule, g, w_in, w, slots, slot_offset, length);
  } else {
    update_loops::ApplyBlock<false>(call.rule, g, w_in, w, slots, slot_offset, length);
  }
}

// Elements from `offset` on.
RUBATO_KERNEL_BODY void RunBlock(const Call& call, int64_t offset, int length) {
  alignas(64) float reduced[update_loops::kBlock];
  alignas(64) float scratch[update_loops::kTogether * update_loops::kBlock];
  const float* w_in = call.weights_in + offset;
  float* w = call.weights_out + offset;
  const void* gradients = reduced;
  if (call.is_alone) {
    gradients = call.readers[0].Next(length, scratch);
  } else {
    update_loops::Reduce(call.contributions, call.count, call.readers, length, scratch, reduced);
    if (call.rule.l2 != 0) update_loops::AddL2(call.rule.l2, w_in, reduced, length);
  }
  const auto* g = static_cast<const UnalignedFloat*>(gradients);
  if (call.moves_slots) {
    BlockSlots block(call, offset, length);
    ApplyTo(call, g, w_in, w, block.slots, 0, length);
    block.Store(call, offset, length);
  } else {
    ApplyTo(call, g, w_in, w, call.slots_out, offset, length);
  }
}

// Whole blocks have loops of their own: with a length that the compiler knows they have nothing but vectors.
RUBATO_KERNEL_BODY void Run(const Call& call) {
  int64_t offset = 0;
  for (; offset + update_loops::kBlock <= call.n; offset += update_loops::kBlock) {
    RunBlock(call, offset, update_loops::kBlock);
  }
  if (offset < call.n) RunBlock(call, offset, static_cast<int>(call.n - offset));
  if (call.moves_slots) FinishStreamingCopies();
}

void RunBaseline(const Call& call) { Run(call); }
RUBATO_TARGET_SSE42 void RunSse42(const Call& call) { Run(call); }
RUBATO_TARGET_AVX2 void RunAvx2(const Call& call) { Run(call); }
RUBATO_TARGET_AVX512 void RunAvx512(const Call& call) { Run(call); }

}  // namespace

void ReduceAndApplyOn(Isa isa, const UpdateRule& rule, const EncodedGradient* contributions, int count,
                      const float* weights_in, float* weights_out, const float* const* slots_in,
                      float* const* slots_out, int64_t n, uint32_t* moved_crc32s) {
  absl::InlinedVector<GradientReader, 4> readers;
  readers.reserve(count);
  for (int k = 0; k < count; ++k) readers.emplace_back(isa, contributions[k], n);
  const bool is_alone = count == 1 && contributions[0].weight == 1 && rule.l2 == 0;
  const int slot_count = NumSlots(rule.formula);
  const bool moves_slots = !std::equal(slots_out, slots_out + slot_count, slots_in);
  if (moved_crc32s != nullptr) std::fill_n(moved_crc32s, slot_count, 0);
  const Call call = {.rule = rule,
                     .contributions = contributions,
                     .count = count,
                     .readers = readers.data(),
                     .weights_in = weights_in,
                     .weights_out = weights_out,
                     .slots_in = slots_in,
                     .slots_out = slots_out,
                     .slot_count = slot_count,
                     .moves_slots = moves_slots,
                     .n = n,
                     .moved_crc32s = moved_crc32s,
                     .is_alone = is_alone};
  ForIsa(isa, RunBaseline, RunSse42, RunAvx2, RunAvx512)(call);
}

Isa ReduceAndApplyIsa() {
  // With AVX-512 these loops, which are as fast as memory is, were a tenth slower (bench/apply_bench): vectors as long
  // as a cache line do not help them, and every one from an unaligned message crosses two lines.
  return std::min(BestIsa(), Isa::kAvx2);
}

void ReduceAndApply(const UpdateRule& rule, const EncodedGradient* contributions, int count, const float* weights_in,
                    float* weights_out, const float* const* slots_in, float* const* slots_out, int64_t n,
                    uint32_t* moved_crc32s) {
  static const Isa isa = ReduceAndApplyIsa();
  ReduceAndApplyOn(isa, rule, contributions, count, weights_in, weights_out, slots_in, slots_out, n, moved_crc32s);
}

}  // namespace rubato
