#ifndef RUBATO_TESTS_SIMULATION_EVENT_QUEUE_H_
#define RUBATO_TESTS_SIMULATION_EVENT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"

namespace rubato::simulation {

// Virtual time: events are delivered in order of their time, and of their making if times are equal. Not
// thread-safe.
class EventQueue {
 public:
  absl::Time Now() const { return now_; }
  void After(absl::Duration delay, std::function<void()> event);
  // Moves time to the next event and runs it; false when there is none.
  bool RunNext();
  int64_t events() const { return events_; }

 private:
  // What the heap moves about: small, without the event's function.
  struct Entry {
    absl::Time at;
    int64_t number;
    // Into functions_.
    size_t function;
  };
  static bool Later(const Entry& a, const Entry& b) { return a.at != b.at ? a.at > b.at : a.number > b.number; }

  absl::Time now_ = absl::UnixEpoch();
  int64_t made_ = 0;
  int64_t events_ = 0;
  std::vector<Entry> heap_;
  std::vector<std::function<void()>> functions_;
  // Of functions_, those that ran.
  std::vector<size_t> free_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_EVENT_QUEUE_H_
