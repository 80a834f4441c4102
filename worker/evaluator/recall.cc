#include "worker/evaluator/recall.h"

#include <cmath>

namespace rubato::worker {

void Recall::Add(const float* outputs, int64_t classes, int32_t label) {
  const float own = outputs[label];
  int64_t before = 0;
  for (int64_t i = 0; i < classes; ++i) {
    const bool is_larger = outputs[i] > own || (outputs[i] == own && i < label);
    if (is_larger || (std::isnan(own) && (!std::isnan(outputs[i]) || i < label))) ++before;
  }
  ++examples_;
  if (before < k_) ++found_;
}

std::optional<double> Recall::Value() const {
  if (examples_ == 0) return std::nullopt;
  return static_cast<double>(found_) / static_cast<double>(examples_);
}

}  // namespace rubato::worker
