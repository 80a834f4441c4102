#include "kernels/optimizer/trust_ratio.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/optimizer/gradient_reader.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/reduce_loops.h"

namespace rubato {
namespace {

using update_loops::kBlock;

// Squares of the Euclidean norms of what is compared.
struct Squares {
  double weights = 0;
  double step = 0;
};

// One pass over a tensor: what it reads, and what it finds.
struct Call {
  const UpdateRule& rule;
  int64_t n;
  // kLars
  const EncodedGradient* contributions = nullptr;
  int count = 0;
  GradientReader* readers = nullptr;
  const float* weights_in = nullptr;
  // kLamb
  const float* first = nullptr;
  const float* second = nullptr;
  float* weights = nullptr;
  // Of the step that is subtracted.
  float factor = 0;
  Squares* squares = nullptr;
};

RUBATO_KERNEL_BODY int LengthAt(const Call& call, int64_t offset) {
  return static_cast<int>(std::min(kBlock, call.n - offset));
}

struct MeasureGradient {
  RUBATO_KERNEL_BODY static void Run(const Call& call) {
    alignas(64) float sum[kBlock];
    alignas(64) float scratch[update_loops::kTogether * kBlock];
    for (int64_t offset = 0; offset < call.n; offset += kBlock) {
      const int length = LengthAt(call, offset);
      update_loops::Reduce(call.contributions, call.count, call.readers, length, scratch, sum);
      call.squares->step += update_loops::SumOfSquares(sum, length);
      call.squares->weights += update_loops::SumOfSquares(call.weights_in + offset, length);
    }
  }
};

// u of LAMB, from what the slots are after this update.
RUBATO_KERNEL_BODY void LambStep(const Call& call, int64_t offset, int length, float* __restrict step) {
  const UpdateRule r = call.rule;
  const float* __restrict m = call.first + offset;
  const float* __restrict v = call.second + offset;
  const float* __restrict w = call.weights + offset;
  for (int i = 0; i < length; ++i) {
    step[i] = r.learning_rate * m[i] / (sqrtf(v[i]) * r.second_moment_scale + r.epsilon) + r.step_decay * w[i];
  }
}

// The step's norm and the weights', or the step itself, subtracted.
template <bool kSubtracts>
struct TakeLambStep {
  RUBATO_KERNEL_BODY static void Run(const Call& call) {
    alignas(64) float step[kBlock];
    for (int64_t offset = 0; offset < call.n; offset += kBlock) {
      const int length = LengthAt(call, offset);
      LambStep(call, offset, length, step);
      float* __restrict w = call.weights + offset;
      if constexpr (kSubtracts) {
        for (int i = 0; i < length; ++i) w[i] -= call.factor * step[i];
      } else {
        call.squares->step += update_loops::SumOfSquares(step, length);
        call.squares->weights += update_loops::SumOfSquares(w, length);
      }
    }
  }
};

template <typename Pass>
void RunBaseline(const Call& call) {
  Pass::Run(call);
}
template <typename Pass>
RUBATO_TARGET_SSE42 void RunSse42(const Call& call) {
  Pass::Run(call);
}
template <typename Pass>
RUBATO_TARGET_AVX2 void RunAvx2(const Call& call) {
  Pass::Run(call);
}
template <typename Pass>
RUBATO_TARGET_AVX512 void RunAvx512(const Call& call) {
  Pass::Run(call);
}

template <typename Pass>
void RunOn(Isa isa, const Call& call) {
  ForIsa(isa, RunBaseline<Pass>, RunSse42<Pass>, RunAvx2<Pass>, RunAvx512<Pass>)(call);
}

}  // namespace

void ApplyWithTrustRatioOn(Isa isa, const UpdateRule& rule, const EncodedGradient* contributions, int count,
                           const float* weights_in, float* weights_out, const float* const* slots_in,
                           float* const* slots_out, int64_t n) {
  UpdateRule plain = rule;
  std::vector<EncodedGradient> scaled(contributions, contributions + count);
  Squares squares;
  if (rule.trust_ratio == TrustRatio::kLars) {
    std::vector<GradientReader> readers;
    readers.reserve(count);
    for (const EncodedGradient& contribution : scaled) readers.emplace_back(isa, contribution, n);
    RunOn<MeasureGradient>(isa, {.rule = rule,
                                 .n = n,
                                 .contributions = contributions,
                                 .count = count,
                                 .readers = readers.data(),
                                 .weights_in = weights_in,
                                 .squares = &squares});
    const double norm = std::sqrt(squares.weights);
    const double others = std::sqrt(squares.step) + static_cast<double>(rule.l2) * norm;
    const double ratio = norm > 0 && others > 0 ? static_cast<double>(rule.trust_scale) * norm / others : 1;
    for (EncodedGradient& each : scaled) each.weight = static_cast<float>(static_cast<double>(each.weight) * ratio);
    plain.l2 = static_cast<float>(static_cast<double>(rule.l2) * ratio);
  } else {
    plain.learning_rate = 0;  // The moments alone are updated, and the weights copied if they are written elsewhere.
  }
  ReduceAndApplyOn(isa, plain, scaled.data(), count, weights_in, weights_out, slots_in, slots_out, n);
  if (rule.trust_ratio != TrustRatio::kLamb) return;

  Call call = {
      .rule = rule, .n = n, .first = slots_out[0], .second = slots_out[1], .weights = weights_out, .squares = &squares};
  RunOn<TakeLambStep<false>>(isa, call);
  const bool compares = squares.weights > 0 && squares.step > 0;
  const double ratio = compares ? std::sqrt(squares.weights / squares.step) : 1;
  call.factor = static_cast<float>(static_cast<double>(rule.trust_scale) * ratio);
  RunOn<TakeLambStep<true>>(isa, call);
}

void ApplyWithTrustRatio(const UpdateRule& rule, const EncodedGradient* contributions, int count,
                         const float* weights_in, float* weights_out, const float* const* slots_in,
                         float* const* slots_out, int64_t n) {
  static const Isa isa = ReduceAndApplyIsa();
  ApplyWithTrustRatioOn(isa, rule, contributions, count, weights_in, weights_out, slots_in, slots_out, n);
}

}  // namespace rubato
