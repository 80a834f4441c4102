#include "bench/gpu/device_timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "bench/bench_output.h"
#include "bench/gpu/random_tensors.h"
#include "common/status.h"

namespace rubato::bench {

absl::StatusOr<double> TimeOperation(Backend& backend, const Operation& run, const TimingOptions& options) {
  const auto seconds_of = [&](int64_t calls) -> absl::StatusOr<double> {
    RUBATO_RETURN_IF_ERROR(backend.Synchronize());
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls; ++i) RUBATO_RETURN_IF_ERROR(run());
    RUBATO_RETURN_IF_ERROR(backend.Synchronize());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  int64_t calls = 1;
  for (double warm = 0;;) {
    RUBATO_ASSIGN_OR_RETURN(const double seconds, seconds_of(calls));
    warm += seconds;
    if (seconds >= options.round_seconds && warm >= options.warm_up_seconds) break;
    // A tenth more than what seems to be enough, but not all at once: the first calls are slow, or look quick.
    const double enough = 1.1 * options.round_seconds / std::max(seconds, 1e-9);
    if (enough > 1.1) calls = static_cast<int64_t>(std::ceil(static_cast<double>(calls) * std::min(enough, 4.0)));
  }
  std::vector<double> times;
  for (int round = 0; round < options.rounds; ++round) {
    RUBATO_ASSIGN_OR_RETURN(const double seconds, seconds_of(calls));
    times.push_back(seconds / static_cast<double>(calls));
  }
  return Median(times);
}

absl::StatusOr<DeviceRates> MeasureRates(Backend& backend, const TimingOptions& options, bool small) {
  const int64_t side = small ? 64 : 4096, elements = (small ? 1 : 256) * (int64_t{1} << 18);
  DeviceRates rates;
  {
    const ElementType type = backend.ActivationType();
    RUBATO_ASSIGN_OR_RETURN(const DeviceTensor a, NormalTensor(backend, {side, side}, type, 1));
    RUBATO_ASSIGN_OR_RETURN(const DeviceTensor b, NormalTensor(backend, {side, side}, type, 2));
    RUBATO_ASSIGN_OR_RETURN(const DeviceTensor c, backend.Allocate({side, side}, type));
    RUBATO_ASSIGN_OR_RETURN(const double seconds,
                            TimeOperation(
                                backend, [&] { return backend.Gemm(false, true, 1, a, b, 0, c); }, options));
    const auto n = static_cast<double>(side);
    rates.flops_per_s = 2 * n * n * n / seconds;
  }
  RUBATO_ASSIGN_OR_RETURN(const DeviceTensor x, NormalTensor(backend, {elements}, ElementType::kFloat32, 3));
  RUBATO_ASSIGN_OR_RETURN(const DeviceTensor y, backend.Allocate({elements}));
  RUBATO_ASSIGN_OR_RETURN(const double seconds, TimeOperation(
                                                    backend, [&] { return backend.Copy(x, y); }, options));
  rates.bytes_per_s = 8 * static_cast<double>(elements) / seconds;
  return rates;
}

double FloorSeconds(const Work& work, const DeviceRates& rates) {
  return std::max(work.flops / rates.flops_per_s, work.bytes / rates.bytes_per_s);
}

}  // namespace rubato::bench
