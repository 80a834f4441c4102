#ifndef RUBATO_KERNELS_OPTIMIZER_COMPENSATION_H_
#define RUBATO_KERNELS_OPTIMIZER_COMPENSATION_H_

#include <cstdint>
#include <optional>

#include "proto/job_config.pb.h"

namespace rubato {

// Compensations for the staleness of a push that are computed element by element; proto/compensation_config.proto has
// their formulas and papers. (The others are a factor on the learning rate, and a push that is not applied.)
enum class CompensationFormula {
  // DC-ASGD with a constant lambda, and with one that is divided by the root of the gradient's mean square.
  kDelay,
  kAdaptiveDelay,
  kGap,
  kDelayedNesterov
};

// What `config` asks for; nothing if no formula is needed for it. `config` is valid (common/config).
std::optional<CompensationFormula> CompensationFormulaOf(const v1::CompensationConfig& config);

// Arrays of state, each as long as the weights and zeros at first, that it has beside the optimizer's slots.
int NumSlots(CompensationFormula formula);

// Whether it looks at the weights that a push was computed from.
bool ReadsPulledWeights(CompensationFormula formula);

// One push: the config's numbers for this moment, in single precision. Plain data.
struct Compensation {
  CompensationFormula formula = CompensationFormula::kDelay;
  // kDelay, kAdaptiveDelay.
  float lambda = 0;
  // kGap: what the root of the decaying mean square is multiplied by, because that begins with zero (as Adam's does).
  float move_scale = 1;
  // kDelayedNesterov: 1 / N, and whether the push is the last one of a period.
  float share = 1;
  bool ends_period = false;
};

// `pushes` counts those to the chunk that were compensated, from 1, this one included. REQUIRES: CompensationFormulaOf
// gives a formula. Pure.
Compensation MakeCompensation(const v1::CompensationConfig& config, int64_t pushes);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_COMPENSATION_H_
