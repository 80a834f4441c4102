#include "cli/capacity/event_queue.h"

namespace rubato::capacity {

bool EventQueue::RunNext() {
  if (events_.empty()) return false;
  const Event event = events_.top();
  events_.pop();
  now_ = event.at;
  ++run_;
  event.target->OnEvent(event.what);
  return true;
}

}  // namespace rubato::capacity
