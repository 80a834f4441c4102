#ifndef RUBATO_COMMON_CLOCK_H_
#define RUBATO_COMMON_CLOCK_H_

#include <cstdint>

#include "absl/time/time.h"

namespace rubato {

// Where time comes from. Injected, so that tests and the simulation own it.
class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back. Comparable within one process only.
  virtual absl::Time Now() const = 0;
  // Returns when `duration` has passed.
  virtual void Sleep(absl::Duration duration) = 0;
};

// Starts at the wall clock's time and then follows the monotonic clock. Thread-safe.
class RealClock : public Clock {
 public:
  RealClock();
  absl::Time Now() const override;
  void Sleep(absl::Duration duration) override;

 private:
  absl::Time start_;
  int64_t start_ns_ = 0;
};

// Stands still until it is told to move. Not thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::UnixEpoch()) : now_(start) {}
  absl::Time Now() const override { return now_; }
  void Sleep(absl::Duration duration) override { now_ += duration; }
  void Advance(absl::Duration duration) { now_ += duration; }

 private:
  absl::Time now_;
};

// Processor time that the calling thread has used: what its work costs, however busy the machine is.
absl::Duration ThreadCpuTime();

}  // namespace rubato

#endif  // RUBATO_COMMON_CLOCK_H_
