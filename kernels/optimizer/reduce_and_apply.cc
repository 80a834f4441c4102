#include "kernels/optimizer/reduce_and_apply.h"

#include "kernels/optimizer/update_loops.h"

namespace rubato {
namespace {

void RunBaseline(const UpdateRule& rule, const GradientSpan* contributions, int count, const float* weights_in,
                 float* weights_out, float* const* slots, int64_t n) {
  update_loops::Run(rule, contributions, count, weights_in, weights_out, slots, n);
}

RUBATO_TARGET_AVX2 void RunAvx2(const UpdateRule& rule, const GradientSpan* contributions, int count,
                                const float* weights_in, float* weights_out, float* const* slots, int64_t n) {
  update_loops::Run(rule, contributions, count, weights_in, weights_out, slots, n);
}

}  // namespace

void ReduceAndApplyOn(Isa isa, const UpdateRule& rule, const GradientSpan* contributions, int count,
                      const float* weights_in, float* weights_out, float* const* slots, int64_t n) {
  const auto run = isa == Isa::kAvx2 ? RunAvx2 : RunBaseline;
  run(rule, contributions, count, weights_in, weights_out, slots, n);
}

void ReduceAndApply(const UpdateRule& rule, const GradientSpan* contributions, int count, const float* weights_in,
                    float* weights_out, float* const* slots, int64_t n) {
  static const Isa best = BestIsa();
  ReduceAndApplyOn(best, rule, contributions, count, weights_in, weights_out, slots, n);
}

}  // namespace rubato
