#ifndef RUBATO_BENCH_GPU_DEVICE_TIMING_H_
#define RUBATO_BENCH_GPU_DEVICE_TIMING_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace rubato::bench {

// Enqueues one call of what is timed.
using Operation = std::function<absl::Status()>;

struct TimingOptions {
  int rounds = 10;
  // Of one round, at least: that many calls in a row.
  double round_seconds = 0.2;
  // Before the first round, at least: libraries load, and clocks rise and settle.
  double warm_up_seconds = 1;
};

// Seconds of one call on the device: the median over rounds. Time is the host's, from an idle device to an idle device:
// what that costs beyond the device's own time is one wait of some microseconds in a round, so events of the device
// would tell nothing more. What is quicker on the device than to enqueue counts as long as it takes to enqueue.
absl::StatusOr<double> TimeOperation(Backend& backend, const Operation& run, const TimingOptions& options);

// What a piece of work multiplies and adds, and what it has to read and write at least, each operand once.
struct Work {
  double flops = 0, bytes = 0;
};

// How fast a device is in what everything else is made of.
struct DeviceRates {
  double flops_per_s = 0;  // Of a square product with sides of 4096.
  double bytes_per_s = 0;  // Read and written by a copy of 256 MiB on the device.
};

// Small: with sides of 64 and a copy of 1 MiB.
absl::StatusOr<DeviceRates> MeasureRates(Backend& backend, const TimingOptions& options, bool small);

// Seconds of the work at the rate of products or at that of copies, whichever takes longer (the roofline of Williams,
// Waterman and Patterson 2009). No strict bound for what fits into the device's caches: they are faster than its
// memory.
double FloorSeconds(const Work& work, const DeviceRates& rates);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_GPU_DEVICE_TIMING_H_
