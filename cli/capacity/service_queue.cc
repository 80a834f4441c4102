#include "cli/capacity/service_queue.h"

#include <algorithm>
#include <functional>

namespace rubato::capacity {

ServiceQueue::Service ServiceQueue::Serve(SimTime now, SimTime duration) {
  busy_ += duration;
  if (free_at_.empty()) return {now, now + duration};
  std::pop_heap(free_at_.begin(), free_at_.end(), std::greater<>());
  SimTime& place = free_at_.back();
  const SimTime begin = std::max(now, place);
  place = begin + duration;
  const Service service = {begin, place};
  std::push_heap(free_at_.begin(), free_at_.end(), std::greater<>());
  return service;
}

}  // namespace rubato::capacity
