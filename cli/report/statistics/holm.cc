#include "cli/report/statistics/holm.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace rubato {

std::vector<double> HolmAdjusted(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double before = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const double scaled = p[order[rank]] * static_cast<double>(order.size() - rank);
    before = std::min(1.0, std::max(before, scaled));
    adjusted[order[rank]] = before;
  }
  return adjusted;
}

}  // namespace rubato
