#include "kernels/optimizer/compensation.h"

#include <cmath>

#include "kernels/optimizer/compensation_loops.h"

namespace rubato {

std::optional<CompensationFormula> CompensationFormulaOf(const v1::CompensationConfig& config) {
  switch (config.method_case()) {
    case v1::CompensationConfig::kDcAsgd:
      return config.dc_asgd().adaptive() ? CompensationFormula::kAdaptiveDelay : CompensationFormula::kDelay;
    case v1::CompensationConfig::kGapAware:
      return CompensationFormula::kGap;
    case v1::CompensationConfig::kDelayedNesterov:
      return CompensationFormula::kDelayedNesterov;
    case v1::CompensationConfig::kStalenessAware:
    case v1::CompensationConfig::kRingmaster:
    case v1::CompensationConfig::METHOD_NOT_SET:
      break;
  }
  return std::nullopt;
}

int NumSlots(CompensationFormula formula) {
  switch (formula) {
    case CompensationFormula::kDelay:
      return 0;
    case CompensationFormula::kAdaptiveDelay:
    case CompensationFormula::kGap:
    case CompensationFormula::kDelayedNesterov:
      break;
  }
  return 1;
}

bool ReadsPulledWeights(CompensationFormula formula) { return formula != CompensationFormula::kDelayedNesterov; }

Compensation MakeCompensation(const v1::CompensationConfig& config, int64_t pushes) {
  Compensation made;
  made.formula = *CompensationFormulaOf(config);
  switch (made.formula) {
    case CompensationFormula::kDelay:
    case CompensationFormula::kAdaptiveDelay:
      made.lambda = static_cast<float>(config.dc_asgd().lambda());
      break;
    case CompensationFormula::kGap:
      // Of the moves before this one. Of none the mean square is zero, whatever it is multiplied by.
      if (pushes > 1) {
        made.move_scale = static_cast<float>(
            1 / std::sqrt(1 - std::pow(compensation_loops::kMoveDecay, static_cast<double>(pushes - 1))));
      }
      break;
    case CompensationFormula::kDelayedNesterov:
      made.share = static_cast<float>(1 / static_cast<double>(config.delayed_nesterov().period()));
      made.ends_period = pushes % config.delayed_nesterov().period() == 0;
      break;
  }
  return made;
}

}  // namespace rubato
