#include "kernels/cuda/update.h"

#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

template <typename Formula>
__global__ void UpdateKernel(UpdateRule rule, const float* gradient, int64_t n, float* w, float* first, float* second) {
  for (int64_t i = First(); i < n; i += Stride()) {
    const float before = w[i];
    const float g = rule.l2 != 0 ? gradient[i] + rule.l2 * before : gradient[i];
    w[i] = NewWeight<Formula>(rule, before, StepOf<Formula>(rule, g, first, second, i));
  }
}

template <typename Formula>
absl::Status Launch(Stream stream, const UpdateRule& rule, const float* gradient, int64_t n, float* weights,
                    float* const* slots) {
  float* first = Formula::kSlots > 0 ? slots[0] : nullptr;
  float* second = Formula::kSlots > 1 ? slots[1] : nullptr;
  RUBATO_CUDA_LAUNCH(UpdateKernel<Formula>, Blocks(n), kThreads, stream, rule, gradient, n, weights, first, second);
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyUpdate(Stream stream, const UpdateRule& rule, const float* gradient, int64_t n, float* weights,
                         float* const* slots) {
  return WithFormula(
      rule.formula, [&](auto formula) { return Launch<decltype(formula)>(stream, rule, gradient, n, weights, slots); });
}

}  // namespace rubato::cuda
