#include "common/clock.h"

#include <ctime>

#include <chrono>
#include <limits>
#include <thread>

#include "absl/time/clock.h"

namespace rubato {
namespace {

int64_t MonotonicNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Readings of both clocks, of which the closest count: a process that starts is often interrupted between two of them,
// and timelines of several processes are laid side by side.
constexpr int kReadings = 8;

}  // namespace

RealClock::RealClock() {
  int64_t closest = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kReadings; ++i) {
    const int64_t before = MonotonicNanoseconds();
    const absl::Time wall = absl::Now();
    const int64_t apart = MonotonicNanoseconds() - before;
    if (apart >= closest) continue;
    closest = apart;
    start_ = wall;
    start_ns_ = before + apart / 2;
  }
}

absl::Time RealClock::Now() const { return start_ + absl::Nanoseconds(MonotonicNanoseconds() - start_ns_); }

void RealClock::Sleep(absl::Duration duration) { std::this_thread::sleep_for(absl::ToChronoNanoseconds(duration)); }

absl::Duration ThreadCpuTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

}  // namespace rubato
