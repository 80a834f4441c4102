#ifndef RUBATO_WORKER_TESTING_SHARED_CLOCK_H_
#define RUBATO_WORKER_TESTING_SHARED_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "common/clock.h"

namespace rubato::worker {

// For tests of the watchdog: whole seconds, which pass when somebody sleeps, on any thread. Thread-safe.
class SharedClock : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + absl::Seconds(seconds_.load()); }
  void Sleep(absl::Duration duration) override { seconds_ += absl::ToInt64Seconds(duration); }

 private:
  std::atomic<int64_t> seconds_ = 0;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TESTING_SHARED_CLOCK_H_
