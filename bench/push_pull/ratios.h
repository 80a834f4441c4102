#ifndef RUBATO_BENCH_PUSH_PULL_RATIOS_H_
#define RUBATO_BENCH_PUSH_PULL_RATIOS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_output.h"

namespace rubato::bench {

// The medians of one case.
struct Measured {
  std::string subject;
  int64_t size = 0;
  int in_flight = 1;
  // Push and pull payload together.
  double gb_per_s = 0;
  double round_trips_per_s = 0;

  double rtt_us() const { return 1e6 * in_flight / round_trips_per_s; }
};

// The subject's own claims, for each size for which both sides were measured: bandwidth of the best in_flight of each
// over that of a reference, and the time of a round trip with one in flight, up to 64 KiB, over the reference's.
std::vector<BenchCase> Ratios(const std::vector<Measured>& measured);

// "64KiB", "1MiB".
std::string SizeName(int64_t bytes);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_RATIOS_H_
