#include "worker/evaluator/calibration.h"

#include <cmath>

namespace rubato::worker {

void Calibration::Add(float logit, int label) {
  probabilities_ += 1 / (1 + std::exp(-static_cast<double>(logit)));
  ones_ += label;
}

std::optional<double> Calibration::Value() const {
  if (ones_ == 0 || std::isnan(probabilities_)) return std::nullopt;
  return probabilities_ / static_cast<double>(ones_);
}

}  // namespace rubato::worker
