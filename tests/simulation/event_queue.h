#ifndef RUBATO_TESTS_SIMULATION_EVENT_QUEUE_H_
#define RUBATO_TESTS_SIMULATION_EVENT_QUEUE_H_

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
  struct Event {
    absl::Time at;
    int64_t number;
    std::function<void()> run;
  };
  static bool Later(const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.number > b.number; }

  absl::Time now_ = absl::UnixEpoch();
  int64_t made_ = 0;
  int64_t events_ = 0;
  std::vector<Event> heap_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_EVENT_QUEUE_H_
