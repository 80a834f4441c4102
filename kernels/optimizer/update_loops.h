#ifndef RUBATO_KERNELS_OPTIMIZER_UPDATE_LOOPS_H_
#define RUBATO_KERNELS_OPTIMIZER_UPDATE_LOOPS_H_

#include <cstdint>

#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/isa.h"
#include "kernels/optimizer/update_formula.h"

// The optimizers' loops over one block of gradients `g`, inlined into a function for each instruction set. Weights are
// read from `w_in` and written to `w`; with kInPlace they are the same and `w_in` is not touched: with two pointers
// that may be equal, the loops could not be vectorised.

namespace rubato::update_loops {

// `first` and `second` are slots, as many as the formula has.
template <typename Formula, bool kInPlace>
RUBATO_KERNEL_BODY void Apply(const UpdateRule& rule, const UnalignedFloat* __restrict g, const float* __restrict w_in,
                              float* __restrict w, float* __restrict first, float* __restrict second, int n) {
  // A copy, which nothing that is written here can change.
  const UpdateRule r = rule;
  for (int i = 0; i < n; ++i) {
    const float step = StepOf<Formula>(r, g[i], first, second, i);
    w[i] = NewWeight<Formula>(r, kInPlace ? w[i] : w_in[i], step);
  }
}

// What L2 regularisation with `l2` adds to gradients.
RUBATO_KERNEL_BODY void AddL2(float l2, const float* __restrict w, float* __restrict g, int n) {
  for (int i = 0; i < n; ++i) g[i] += l2 * w[i];
}

// Calls Apply with the rule's formula.
template <bool kInPlace>
struct BlockUpdate {
  template <typename Formula>
  RUBATO_KERNEL_BODY void operator()(Formula) const {
    Apply<Formula, kInPlace>(rule, g, w_in, w, Formula::kSlots > 0 ? slots[0] + offset : nullptr,
                             Formula::kSlots > 1 ? slots[1] + offset : nullptr, n);
  }

  const UpdateRule& rule;
  const UnalignedFloat* g;
  const float* w_in;
  float* w;
  float* const* slots;
  int64_t offset;
  int n;
};

// The formula on one block, whose gradients hold what L2 regularisation adds. Slots from element `offset` on.
template <bool kInPlace>
RUBATO_KERNEL_BODY void ApplyBlock(const UpdateRule& rule, const UnalignedFloat* g, const float* w_in, float* w,
                                   float* const* slots, int64_t offset, int n) {
  WithFormula(rule.formula, BlockUpdate<kInPlace>{rule, g, w_in, w, slots, offset, n});
}

}  // namespace rubato::update_loops

#endif  // RUBATO_KERNELS_OPTIMIZER_UPDATE_LOOPS_H_
