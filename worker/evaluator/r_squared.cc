#include "worker/evaluator/r_squared.h"

#include <cmath>

namespace rubato::worker {

void RSquared::AddLabels(const float* labels, int64_t examples) {
  for (int64_t example = 0; example < examples; ++example) {
    ++examples_;
    for (double& mean : means_) {
      const double label = *labels++;
      const double distance = label - mean;
      mean += distance / static_cast<double>(examples_);
      squares_ += distance * (label - mean);
    }
  }
}

std::optional<double> RSquared::Value(double loss_sum) const {
  const double value = 1 - loss_sum * static_cast<double>(means_.size()) / squares_;
  return squares_ > 0 && std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

}  // namespace rubato::worker
