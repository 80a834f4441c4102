#ifndef RUBATO_CLI_CAPACITY_EVENT_QUEUE_H_
#define RUBATO_CLI_CAPACITY_EVENT_QUEUE_H_

#include <cstdint>
#include <queue>
#include <vector>

namespace rubato::capacity {

// Virtual time, or a length of it, in nanoseconds. There are hundreds of events in a step of a thousand workers, for
// which absl::Time would take twice the memory and the time.
using SimTime = int64_t;

inline constexpr double kNanosecondsPerSecond = 1e9;
inline SimTime FromSeconds(double seconds) { return static_cast<SimTime>(seconds * kNanosecondsPerSecond + 0.5); }
inline double ToSeconds(SimTime time) { return static_cast<double>(time) / kNanosecondsPerSecond; }

// To whom something happens.
class EventTarget {
 public:
  virtual ~EventTarget() = default;
  // `what` is as it was scheduled, and means what the target wants it to.
  virtual void OnEvent(uint64_t what) = 0;
};

// What is to happen, in order of time, and what is at the same time in the order in which it was scheduled: so a run is
// the same every time. Not thread-safe.
//
//   queue.At(queue.now() + latency, &server, slot);
//   while (!done && queue.RunNext()) {}
class EventQueue {
 public:
  SimTime now() const { return now_; }
  // `at` is not before now(). The target outlives the event.
  void At(SimTime at, EventTarget* target, uint64_t what) { events_.push({at, ++scheduled_, target, what}); }
  // Lets time go on to the next event. False, and nothing happens, if there is none.
  bool RunNext();
  // Events so far.
  int64_t run() const { return run_; }

 private:
  struct Event {
    SimTime at;
    uint64_t number;
    EventTarget* target;
    uint64_t what;

    bool operator<(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };

  SimTime now_ = 0;
  uint64_t scheduled_ = 0;
  int64_t run_ = 0;
  std::priority_queue<Event> events_;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_EVENT_QUEUE_H_
