#ifndef RUBATO_COMMON_SESSION_CLOCK_OFFSET_H_
#define RUBATO_COMMON_SESSION_CLOCK_OFFSET_H_

#include <cstddef>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace rubato {

// By how much another clock is ahead of ours, from messages to its owner and back (Cristian 1989): the other clock was
// read between sending and receiving, so the midpoint is wrong by at most half of the time between them. The quickest
// of the latest messages counts: older ones would have what the clocks have drifted since. Pure; not thread-safe.
//
//   ClockOffset offset;
//   offset.Add(sent, received, there);
//   absl::Time on_their_clock = now + offset.best()->ahead;
class ClockOffset {
 public:
  // Messages that count.
  static constexpr size_t kLatest = 32;

  struct Estimate {
    // The other clock minus ours.
    absl::Duration ahead;
    // The truth is at most this far away.
    absl::Duration error;
  };

  // `sent` and `received` on our clock; `there` is what the other one said in between. One that was received before it
  // was sent is left out.
  void Add(absl::Time sent, absl::Time received, absl::Time there);

  // Nothing before the first message.
  std::optional<Estimate> best() const;

 private:
  std::deque<Estimate> latest_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SESSION_CLOCK_OFFSET_H_
