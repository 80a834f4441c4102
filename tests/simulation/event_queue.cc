#include "tests/simulation/event_queue.h"

#include <algorithm>
#include <utility>

namespace rubato::simulation {

void EventQueue::After(absl::Duration delay, std::function<void()> event) {
  heap_.push_back({now_ + std::max(delay, absl::ZeroDuration()), made_++, std::move(event)});
  std::push_heap(heap_.begin(), heap_.end(), Later);
}

bool EventQueue::RunNext() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), Later);
  Event event = std::move(heap_.back());
  heap_.pop_back();
  now_ = event.at;
  ++events_;
  event.run();
  return true;
}

}  // namespace rubato::simulation
