#ifndef RUBATO_CLI_CAPACITY_SERVICE_QUEUE_H_
#define RUBATO_CLI_CAPACITY_SERVICE_QUEUE_H_

#include <cstddef>
#include <vector>

#include "cli/capacity/event_queue.h"

namespace rubato::capacity {

// Something that serves one thing after another in the order in which they come, or as many at a time as it has places:
// a link, a thread, the processors of a host. What comes is told at once when it will be done, so there are no events
// of its own. Not thread-safe.
//
//   ServiceQueue link(1);
//   const Service sent = link.Serve(queue.now(), bytes / rate);
class ServiceQueue {
 public:
  struct Service {
    SimTime begin;
    SimTime end;
  };

  // At least 1. kUnlimited: whatever comes is begun at once.
  static constexpr int kUnlimited = 0;
  explicit ServiceQueue(int places) : free_at_(static_cast<size_t>(places), 0) {}

  // Comes at `now`, which is not before what came earlier, and takes so long, 0 or more, once it is its turn.
  Service Serve(SimTime now, SimTime duration);

  // For how long its places were in use together, by all that has come so far.
  SimTime busy() const { return busy_; }
  // 0: kUnlimited.
  int places() const { return static_cast<int>(free_at_.size()); }

 private:
  // By place: a heap with the earliest first.
  std::vector<SimTime> free_at_;
  SimTime busy_ = 0;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_SERVICE_QUEUE_H_
