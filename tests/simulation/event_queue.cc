#include "tests/simulation/event_queue.h"

#include <algorithm>
#include <utility>

namespace rubato::simulation {

void EventQueue::After(absl::Duration delay, std::function<void()> event) {
  size_t function = functions_.size();
  if (free_.empty()) {
    functions_.push_back(std::move(event));
  } else {
    function = free_.back();
    free_.pop_back();
    functions_[function] = std::move(event);
  }
  heap_.push_back({now_ + std::max(delay, absl::ZeroDuration()), made_++, function});
  std::push_heap(heap_.begin(), heap_.end(), Later);
}

bool EventQueue::RunNext() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), Later);
  const Entry next = heap_.back();
  heap_.pop_back();
  const std::function<void()> event = std::move(functions_[next.function]);
  free_.push_back(next.function);
  now_ = next.at;
  ++events_;
  event();
  return true;
}

}  // namespace rubato::simulation
