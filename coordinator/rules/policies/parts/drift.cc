#include "coordinator/rules/policies/parts/drift.h"

#include <algorithm>

namespace rubato::coordinator {

void Drift::Note(uint64_t generation, const GradientNoise::Sums& gradients, int64_t batches) {
  if (generation != generation_) {
    generation_ = generation;
    before_ = gradients;
  }
  const double spread = gradients.spread - before_.spread;
  if (!(spread > 0)) return;
  // Chance gives estimates under 0, and near 1 over it.
  const double share = std::clamp((gradients.lasting_spread - before_.lasting_spread) / spread, 0.0, 0.999);
  ratio_ = share / (1 - share) / static_cast<double>(batches);
}

std::optional<double> Drift::Ratio(int64_t batches) const {
  return ratio_.has_value() ? std::optional(*ratio_ * static_cast<double>(batches)) : std::nullopt;
}

}  // namespace rubato::coordinator
