#include "common/config/batch_sizes.h"

#include <algorithm>

namespace rubato {

int64_t LargestBatch(const v1::JobConfig& config) {
  const int64_t batch = config.training().batch_size();
  if (config.consistency().policy() != v1::ConsistencyConfig::BALANCE) return batch;
  const double largest = config.consistency().balance().batch_max() * static_cast<double>(batch);
  return std::max(batch, static_cast<int64_t>(std::min(largest, 0x1p62)));
}

int64_t BatchSize(const v1::JobConfig& config, const v1::Plan& plan, uint32_t worker) {
  const auto& decided = plan.decided_members();
  const auto found = std::find(decided.begin(), decided.end(), worker);
  const auto place = static_cast<int>(found - decided.begin());
  if (found == decided.end() || place >= plan.batch_sizes_size()) return config.training().batch_size();
  return std::clamp<int64_t>(plan.batch_sizes(place), 1, std::max<int64_t>(LargestBatch(config), 1));
}

}  // namespace rubato
