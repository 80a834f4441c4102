#ifndef RUBATO_SERVER_RULES_BY_WORKER_H_
#define RUBATO_SERVER_RULES_BY_WORKER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rubato::server {

// Position of the first of `items` whose worker's index is `worker` or more; their number if there is none. `items`
// stand in ascending order of the indices, each at most once, which `index_of` tells. At once if no worker before is
// missing, as a rule, otherwise by bisection.
template <typename Items, typename IndexOf>
size_t LowerBoundByWorker(const Items& items, uint32_t worker, const IndexOf& index_of) {
  const size_t size = static_cast<size_t>(items.size());
  // Nothing stands behind the place that its index names.
  const size_t end = std::min<size_t>(worker, size);
  if (end < size && index_of(items[static_cast<int>(end)]) == worker) return end;
  const auto begin = items.begin();
  const auto at = std::lower_bound(begin, begin + static_cast<std::ptrdiff_t>(end), worker,
                                   [&](const auto& item, uint32_t index) { return index_of(item) < index; });
  return static_cast<size_t>(at - begin);
}

// Position of that worker's; the number of `items` if there is none.
template <typename Items, typename IndexOf>
size_t FindByWorker(const Items& items, uint32_t worker, const IndexOf& index_of) {
  const size_t size = static_cast<size_t>(items.size());
  const size_t at = LowerBoundByWorker(items, worker, index_of);
  return at < size && index_of(items[static_cast<int>(at)]) == worker ? at : size;
}

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_BY_WORKER_H_
