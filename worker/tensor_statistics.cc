#include "worker/tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rubato::worker {
namespace {

void CountParts(absl::Span<const float> elements, v1::TensorStatistics* statistics) {
  const double min = statistics->min();
  const double width = statistics->max() - min;
  const int parts = width > 0 ? kStatisticsParts : 1;
  statistics->mutable_counts()->Resize(parts, 0);
  for (float element : elements) {
    if (!std::isfinite(element)) continue;
    const int part = width > 0 ? static_cast<int>((element - min) / width * parts) : 0;
    // The largest one is in the last part.
    ++*statistics->mutable_counts()->Mutable(std::min(part, parts - 1));
  }
}

}  // namespace

v1::TensorStatistics DescribeTensor(absl::Span<const float> elements) {
  double min = std::numeric_limits<double>::infinity();
  double max = -min;
  double sum = 0;
  double sum_squares = 0;
  int64_t non_finite = 0;
  for (float element : elements) {
    if (!std::isfinite(element)) {
      ++non_finite;
      continue;
    }
    const double value = element;
    min = std::min(min, value);
    max = std::max(max, value);
    sum += value;
    sum_squares += value * value;
  }
  v1::TensorStatistics statistics;
  statistics.set_elements(static_cast<int64_t>(elements.size()));
  statistics.set_non_finite(non_finite);
  if (non_finite == statistics.elements()) return statistics;
  statistics.set_min(min);
  statistics.set_max(max);
  statistics.set_sum(sum);
  statistics.set_sum_squares(sum_squares);
  CountParts(elements, &statistics);
  return statistics;
}

}  // namespace rubato::worker
