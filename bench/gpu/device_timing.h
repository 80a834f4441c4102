#ifndef RUBATO_BENCH_GPU_DEVICE_TIMING_H_
#define RUBATO_BENCH_GPU_DEVICE_TIMING_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace rubato::bench {

// Enqueues one call of what is timed.
using Operation = std::function<absl::Status()>;

// Seconds of one call on the device: the median of `rounds`, each of as many calls in a row as take about 50 ms.
absl::StatusOr<double> TimeOperation(Backend& backend, const Operation& run, int rounds);

// How fast a device is in what everything else is made of.
struct DeviceRates {
  double flops_per_s = 0;  // Of a square product with sides of 4096.
  double bytes_per_s = 0;  // Read and written by a copy of 256 MiB on the device.
};

// Small: with sides of 64 and a copy of 1 MiB.
absl::StatusOr<DeviceRates> MeasureRates(Backend& backend, int rounds, bool small);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_GPU_DEVICE_TIMING_H_
