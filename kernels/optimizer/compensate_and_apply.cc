#include "kernels/optimizer/compensate_and_apply.h"

#include <cstring>

#include "kernels/optimizer/compensation_loops.h"
#include "kernels/optimizer/gradient_reader.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/reduce_loops.h"
#include "kernels/optimizer/update_loops.h"

namespace rubato {
namespace {

using update_loops::kBlock;

// One call of CompensateAndApply.
struct Call {
  const UpdateRule& rule;
  const Compensation& compensation;
  GradientReader& reader;
  const float* pulled;
  const float* weights_in;
  float* weights_out;
  const float* const* slots_in;
  float* const* slots_out;
  // Of the optimizer; the compensation's come after.
  int optimizer_slots;
  int slots;
  int64_t n;
};

// Elements from `offset` on, whose gradients are `g`, whose weights are `before`, and which were computed from
// `pulled`.
RUBATO_KERNEL_BODY void ApplyCompensated(const Call& call, float* g, const float* before, const float* pulled,
                                         int64_t offset, int n) {
  const UpdateRule& rule = call.rule;
  const Compensation& compensation = call.compensation;
  float* own = call.slots > call.optimizer_slots ? call.slots_out[call.optimizer_slots] + offset : nullptr;
  float* moved = call.weights_out + offset;
  switch (compensation.formula) {
    case CompensationFormula::kDelay:
      compensation_loops::CompensateDelay(compensation.lambda, before, pulled, g, n);
      break;
    case CompensationFormula::kAdaptiveDelay:
      compensation_loops::CompensateDelayAdaptively(compensation.lambda, before, pulled, own, g, n);
      break;
    case CompensationFormula::kGap:
    case CompensationFormula::kDelayedNesterov:
      break;
  }
  // After delays were compensated, because this is of the weights that it is applied to.
  if (rule.l2 != 0) update_loops::AddL2(rule.l2, before, g, n);
  if (compensation.formula == CompensationFormula::kDelayedNesterov) {
    float* momentum = call.slots_out[0] + offset;
    if (compensation.ends_period) {
      compensation_loops::ApplyDelayedNesterov<true>(rule, compensation.share, g, before, moved, momentum, own, n);
    } else {
      compensation_loops::ApplyDelayedNesterov<false>(rule, compensation.share, g, before, moved, momentum, own, n);
    }
    return;
  }
  const bool gap = compensation.formula == CompensationFormula::kGap;
  if (gap) compensation_loops::DivideByGap(compensation.move_scale, before, pulled, own, g, n);
  update_loops::ApplyBlock<false>(rule, reinterpret_cast<const UnalignedFloat*>(g), before, moved, call.slots_out,
                                  offset, n);
  if (gap) compensation_loops::AverageMoves(before, moved, own, n);
}

RUBATO_KERNEL_BODY void RunBlock(const Call& call, int64_t offset, int n) {
  alignas(64) float g[kBlock];
  // A copy: the weights may be updated where they are.
  alignas(64) float before[kBlock];
  alignas(64) float scratch[kBlock];
  const size_t bytes = sizeof(float) * n;
  std::memcpy(g, call.reader.Next(n, scratch), bytes);
  std::memcpy(before, call.weights_in + offset, bytes);
  for (int k = 0; k < call.slots; ++k) {
    if (call.slots_in[k] != call.slots_out[k]) {
      std::memcpy(call.slots_out[k] + offset, call.slots_in[k] + offset, bytes);
    }
  }
  ApplyCompensated(call, g, before, call.pulled == nullptr ? before : call.pulled + offset, offset, n);
}

// Whole blocks have loops of their own: with a length that the compiler knows they have nothing but vectors.
RUBATO_KERNEL_BODY void Run(const Call& call) {
  int64_t offset = 0;
  for (; offset + kBlock <= call.n; offset += kBlock) RunBlock(call, offset, kBlock);
  if (offset < call.n) RunBlock(call, offset, static_cast<int>(call.n - offset));
}

void RunBaseline(const Call& call) { Run(call); }
RUBATO_TARGET_SSE42 void RunSse42(const Call& call) { Run(call); }
RUBATO_TARGET_AVX2 void RunAvx2(const Call& call) { Run(call); }
RUBATO_TARGET_AVX512 void RunAvx512(const Call& call) { Run(call); }

}  // namespace

void CompensateAndApplyOn(Isa isa, const UpdateRule& rule, const Compensation& compensation,
                          const EncodedGradient& push, const float* pulled, const float* weights_in, float* weights_out,
                          const float* const* slots_in, float* const* slots_out, int64_t n) {
  GradientReader reader(isa, push, n);
  const int optimizer_slots = NumSlots(rule.formula);
  const Call call = {rule,
                     compensation,
                     reader,
                     pulled,
                     weights_in,
                     weights_out,
                     slots_in,
                     slots_out,
                     optimizer_slots,
                     optimizer_slots + NumSlots(compensation.formula),
                     n};
  ForIsa(isa, RunBaseline, RunSse42, RunAvx2, RunAvx512)(call);
}

void CompensateAndApply(const UpdateRule& rule, const Compensation& compensation, const EncodedGradient& push,
                        const float* pulled, const float* weights_in, float* weights_out, const float* const* slots_in,
                        float* const* slots_out, int64_t n) {
  static const Isa isa = ReduceAndApplyIsa();
  CompensateAndApplyOn(isa, rule, compensation, push, pulled, weights_in, weights_out, slots_in, slots_out, n);
}

}  // namespace rubato
