#ifndef RUBATO_KERNELS_OPTIMIZER_UPDATE_FORMULA_H_
#define RUBATO_KERNELS_OPTIMIZER_UPDATE_FORMULA_H_

#include <cstdint>
#include <type_traits>

#include <math.h>

#include "kernels/optimizer/isa.h"

// The optimizers' formulas, for one weight. The CPU's loops (update_loops.h) and the GPU's kernel
// (kernels/cuda/update.cu.cc) are made of them, so both do the same operations on float32 in the same order, and give
// the same bits. Without the config's messages, which the compiler of kernels does not see.
//
// An optimizer is an enumerator, a struct and a case of WithFormula, all in this file.

// Compiled for what uses it: a GPU, or an instruction set.
#ifdef __CUDACC__
#define RUBATO_FORMULA __host__ __device__ inline
#else
#define RUBATO_FORMULA RUBATO_KERNEL_BODY
#endif

namespace rubato {

enum class UpdateFormula { kSgd, kMomentum, kNesterov, kAdaGrad, kRmsProp, kAdam, kMean };

// What the step of a whole tensor is scaled by (kernels/optimizer/trust_ratio.h).
enum class TrustRatio { kNone, kLars, kLamb };

// One update of one chunk: the config's numbers resolved for this moment, in single precision. Plain data.
struct UpdateRule {
  UpdateFormula formula = UpdateFormula::kSgd;
  // The learning rate now. kAdam: divided by 1 - beta1^t; TrustRatio::kLamb: 1 divided by that.
  float learning_rate = 0;
  float momentum = 0;
  // Decay of the first moment and its complement. Complements are rounded once, from double precision.
  float beta1 = 0;
  float beta1_complement = 1;
  // Decay of the second moment (kRmsProp: rho) and its complement.
  float beta2 = 0;
  float beta2_complement = 1;
  float epsilon = 0;
  // kAdam: 1 / sqrt(1 - beta2^t).
  float second_moment_scale = 1;
  // Added to the gradient times the weight. 0 if weight decay is decoupled from the gradient.
  float l2 = 0;
  // The weights are multiplied by this first, if weight decay is decoupled. 1 changes no bit.
  float shrink = 1;
  // With another one than kNone the chunk is a whole tensor.
  TrustRatio trust_ratio = TrustRatio::kNone;
  // kLars: the trust coefficient. kLamb: the learning rate.
  float trust_scale = 1;
  // kLamb: what is added to the step times the weight, before its norm is taken.
  float step_decay = 0;
};

// Each formula has kSlots floats of state beside the weight, and Step, which updates these from the gradient g and
// returns what is subtracted from the weight: w = shrink w - step (NewWeight).

struct SgdFormula {
  static constexpr int kSlots = 0;
  static RUBATO_FORMULA float Step(const UpdateRule& r, float g) { return r.learning_rate * g; }
};

struct MomentumFormula {
  static constexpr int kSlots = 1;
  static RUBATO_FORMULA float Step(const UpdateRule& r, float g, float& v) {
    v = r.momentum * v + g;
    return r.learning_rate * v;
  }
};

struct NesterovFormula {
  static constexpr int kSlots = 1;
  static RUBATO_FORMULA float Step(const UpdateRule& r, float g, float& v) {
    v = r.momentum * v + g;
    return r.learning_rate * (g + r.momentum * v);
  }
};

struct AdaGradFormula {
  static constexpr int kSlots = 1;
  static RUBATO_FORMULA float Step(const UpdateRule& r, float g, float& a) {
    a += g * g;
    return r.learning_rate * g / (sqrtf(a) + r.epsilon);
  }
};

struct RmsPropFormula {
  static constexpr int kSlots = 1;
  static RUBATO_FORMULA float Step(const UpdateRule& r, float g, float& a) {
    a = r.beta2 * a + r.beta2_complement * (g * g);
    return r.learning_rate * g / (sqrtf(a) + r.epsilon);
  }
};

struct AdamFormula {
  static constexpr int kSlots = 2;
  static RUBATO_FORMULA float Step(const UpdateRule& r, float g, float& m, float& v) {
    m = r.beta1 * m + r.beta1_complement * g;
    v = r.beta2 * v + r.beta2_complement * (g * g);
    return r.learning_rate * m / (sqrtf(v) * r.second_moment_scale + r.epsilon);
  }
};

// The gradient is the new weight.
struct MeanFormula {
  static constexpr int kSlots = 0;
  static RUBATO_FORMULA float Step(const UpdateRule&, float g) { return g; }
};

// visitor(AdamFormula()), or whichever it is.
template <typename Visitor>
RUBATO_KERNEL_BODY auto WithFormula(UpdateFormula formula, const Visitor& visitor) {
  switch (formula) {
    case UpdateFormula::kSgd:
      return visitor(SgdFormula());
    case UpdateFormula::kMomentum:
      return visitor(MomentumFormula());
    case UpdateFormula::kNesterov:
      return visitor(NesterovFormula());
    case UpdateFormula::kAdaGrad:
      return visitor(AdaGradFormula());
    case UpdateFormula::kRmsProp:
      return visitor(RmsPropFormula());
    case UpdateFormula::kAdam:
      return visitor(AdamFormula());
    case UpdateFormula::kMean:
      return visitor(MeanFormula());
  }
  __builtin_unreachable();
}

// Arrays of state, each as long as the weights, that a formula has.
inline int NumSlots(UpdateFormula formula) {
  return WithFormula(formula, [](auto f) { return decltype(f)::kSlots; });
}

// Formula::Step for element i. `first` and `second` are slots, as many as the formula has.
template <typename Formula>
RUBATO_FORMULA float StepOf(const UpdateRule& rule, float g, float* first, float* second, int64_t i) {
  static_assert(Formula::kSlots >= 0 && Formula::kSlots <= 2);
  if constexpr (Formula::kSlots == 2) {
    return Formula::Step(rule, g, first[i], second[i]);
  } else if constexpr (Formula::kSlots == 1) {
    return Formula::Step(rule, g, first[i]);
  } else {
    return Formula::Step(rule, g);
  }
}

// The weight after a step. With kMean nothing of the weight before is left, also if that was not finite.
template <typename Formula>
RUBATO_FORMULA float NewWeight(const UpdateRule& rule, float before, float step) {
  if constexpr (std::is_same_v<Formula, MeanFormula>) {
    return step;
  } else {
    return rule.shrink * before - step;
  }
}

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_UPDATE_FORMULA_H_
