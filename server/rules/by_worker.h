#ifndef RUBATO_SERVER_RULES_BY_WORKER_H_
#define RUBATO_SERVER_RULES_BY_WORKER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rubato::server {

// Position of that worker's among `items`, which stand in ascending order of their workers' indices, each at most once,
// which `index_of` tells; their number if there is none. At once if no worker before is missing, as a rule, otherwise
// by bisection.
template <typename Items, typename IndexOf>
size_t FindByWorker(const Items& items, uint32_t worker, const IndexOf& index_of) {
  const size_t size = static_cast<size_t>(items.size());
  // Nothing stands behind the place that its index names.
  const size_t end = std::min<size_t>(worker, size);
  if (end < size && index_of(items[static_cast<int>(end)]) == worker) return end;
  const auto begin = items.begin();
  const auto last = begin + static_cast<std::ptrdiff_t>(end);
  const auto at =
      std::lower_bound(begin, last, worker, [&](const auto& item, uint32_t index) { return index_of(item) < index; });
  return at != last && index_of(*at) == worker ? static_cast<size_t>(at - begin) : size;
}

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_BY_WORKER_H_
