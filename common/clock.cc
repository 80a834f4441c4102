#include "common/clock.h"

#include <ctime>

#include <chrono>
#include <thread>

#include "absl/time/clock.h"

namespace rubato {
namespace {

int64_t MonotonicNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

RealClock::RealClock() : start_(absl::Now()), start_ns_(MonotonicNanoseconds()) {}

absl::Time RealClock::Now() const { return start_ + absl::Nanoseconds(MonotonicNanoseconds() - start_ns_); }

void RealClock::Sleep(absl::Duration duration) { std::this_thread::sleep_for(absl::ToChronoNanoseconds(duration)); }

absl::Duration ThreadCpuTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

}  // namespace rubato
