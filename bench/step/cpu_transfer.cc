#include "bench/step/cpu_transfer.h"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "bench/bench_output.h"
#include "common/clock.h"

namespace rubato::bench {
namespace {

constexpr size_t kBytes = size_t{64} << 10;
constexpr int kTimes = 120;

bool PinThread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

}  // namespace

double OverwriteGbPerS(int writer, int reader) {
  std::vector<uint64_t> shared(kBytes / sizeof(uint64_t));
  std::vector<double> rates;
  std::atomic<int> turn = 0;
  std::atomic<bool> pinned = true;
  uint64_t sum = 0;
  std::thread reads([&] {
    if (!PinThread(reader)) pinned = false;
    for (int i = 0; i < kTimes; ++i) {
      while (turn != 2 * i + 1) {
      }
      for (const uint64_t word : shared) sum += word;
      turn = 2 * i + 2;
    }
  });
  std::thread writes([&] {
    if (!PinThread(writer)) pinned = false;
    for (int i = 0; i < kTimes; ++i) {
      while (turn != 2 * i) {
      }
      const absl::Duration begun = ThreadCpuTime();
      for (uint64_t& word : shared) word = static_cast<uint64_t>(i);
      rates.push_back(kBytes / absl::ToDoubleSeconds(ThreadCpuTime() - begun) / 1e9);
      turn = 2 * i + 1;
    }
  });
  reads.join();
  writes.join();
  const bool is_whole = sum == kBytes / sizeof(uint64_t) * (kTimes * (kTimes - 1) / 2);
  return pinned && is_whole ? Median(rates) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace rubato::bench
