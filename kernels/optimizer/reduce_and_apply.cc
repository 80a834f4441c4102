#include "kernels/optimizer/reduce_and_apply.h"

#include <algorithm>
#include <cstring>
#include <vector>

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
  int64_t n;
  // One contribution, which is the gradient as it is: read where it arrived.
  bool is_alone;
};

// Slots that are written elsewhere than they are read: the block is copied, and then worked on where it is in a cache.
RUBATO_KERNEL_BODY void CopySlots(const Call& call, int64_t offset, int length) {
  for (int k = 0; k < call.slot_count; ++k) {
    const float* from = call.slots_in[k];
    float* to = call.slots_out[k];
    if (from != to) std::memcpy(to + offset, from + offset, sizeof(float) * length);
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
  CopySlots(call, offset, length);
  const auto* g = static_cast<const UnalignedFloat*>(gradients);
  if (call.weights_in == call.weights_out) {
    update_loops::ApplyBlock<true>(call.rule, g, w_in, w, call.slots_out, offset, length);
  } else {
    update_loops::ApplyBlock<false>(call.rule, g, w_in, w, call.slots_out, offset, length);
  }
}

// Whole blocks have loops of their own: with a length that the compiler knows they have nothing but vectors.
RUBATO_KERNEL_BODY void Run(const Call& call) {
  int64_t offset = 0;
  for (; offset + update_loops::kBlock <= call.n; offset += update_loops::kBlock) {
    RunBlock(call, offset, update_loops::kBlock);
  }
  if (offset < call.n) RunBlock(call, offset, static_cast<int>(call.n - offset));
}

void RunBaseline(const Call& call) { Run(call); }
RUBATO_TARGET_SSE42 void RunSse42(const Call& call) { Run(call); }
RUBATO_TARGET_AVX2 void RunAvx2(const Call& call) { Run(call); }
RUBATO_TARGET_AVX512 void RunAvx512(const Call& call) { Run(call); }

}  // namespace

void ReduceAndApplyOn(Isa isa, const UpdateRule& rule, const EncodedGradient* contributions, int count,
                      const float* weights_in, float* weights_out, const float* const* slots_in,
                      float* const* slots_out, int64_t n) {
  std::vector<GradientReader> readers;
  readers.reserve(count);
  for (int k = 0; k < count; ++k) readers.emplace_back(isa, contributions[k], n);
  const bool is_alone = count == 1 && contributions[0].weight == 1 && rule.l2 == 0;
  const Call call = {rule,      contributions,          count, readers.data(), weights_in, weights_out, slots_in,
                     slots_out, NumSlots(rule.formula), n,     is_alone};
  ForIsa(isa, RunBaseline, RunSse42, RunAvx2, RunAvx512)(call);
}

Isa ReduceAndApplyIsa() {
  // With AVX-512 these loops, which are as fast as memory is, were a tenth slower (bench/apply_bench): vectors as long
  // as a cache line do not help them, and every one from an unaligned message crosses two lines.
  return std::min(BestIsa(), Isa::kAvx2);
}

void ReduceAndApply(const UpdateRule& rule, const EncodedGradient* contributions, int count, const float* weights_in,
                    float* weights_out, const float* const* slots_in, float* const* slots_out, int64_t n) {
  static const Isa isa = ReduceAndApplyIsa();
  ReduceAndApplyOn(isa, rule, contributions, count, weights_in, weights_out, slots_in, slots_out, n);
}

}  // namespace rubato
