#include "common/clock.h"

#include <chrono>

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

}  // namespace rubato
