#include "bench/gpu/device_timing.h"

#include <chrono>
#include <vector>

#include "bench/bench_output.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

// Not zeros, with which products draw less power and run faster.
absl::StatusOr<DeviceTensor> Noise(Backend& backend, Shape shape) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor tensor, backend.Allocate(std::move(shape), backend.ActivationType()));
  RUBATO_RETURN_IF_ERROR(backend.Fill(1, tensor));
  RUBATO_RETURN_IF_ERROR(backend.Dropout({.rate = 0.5, .seed = 1, .stream = 1}, tensor, tensor));
  return tensor;
}

}  // namespace

absl::StatusOr<double> TimeOperation(Backend& backend, const Operation& run, int rounds) {
  const auto seconds_of = [&](int calls) -> absl::StatusOr<double> {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) RUBATO_RETURN_IF_ERROR(run());
    RUBATO_RETURN_IF_ERROR(backend.Synchronize());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  RUBATO_RETURN_IF_ERROR(seconds_of(3).status());
  RUBATO_ASSIGN_OR_RETURN(const double once, seconds_of(1));
  const int calls = once > 0.05 ? 1 : static_cast<int>(0.05 / once) + 1;
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    RUBATO_ASSIGN_OR_RETURN(const double seconds, seconds_of(calls));
    times.push_back(seconds / calls);
  }
  return Median(times);
}

absl::StatusOr<DeviceRates> MeasureRates(Backend& backend, int rounds, bool small) {
  const int64_t side = small ? 64 : 4096, elements = (small ? 1 : 256) * (int64_t{1} << 18);
  DeviceRates rates;
  {
    RUBATO_ASSIGN_OR_RETURN(const DeviceTensor a, Noise(backend, {side, side}));
    RUBATO_ASSIGN_OR_RETURN(const DeviceTensor b, Noise(backend, {side, side}));
    RUBATO_ASSIGN_OR_RETURN(const DeviceTensor c, Noise(backend, {side, side}));
    RUBATO_ASSIGN_OR_RETURN(const double seconds,
                            TimeOperation(
                                backend, [&] { return backend.Gemm(false, true, 1, a, b, 0, c); }, rounds));
    const auto n = static_cast<double>(side);
    rates.flops_per_s = 2 * n * n * n / seconds;
  }
  RUBATO_ASSIGN_OR_RETURN(const DeviceTensor x, backend.Allocate({elements}));
  RUBATO_ASSIGN_OR_RETURN(const DeviceTensor y, backend.Allocate({elements}));
  RUBATO_ASSIGN_OR_RETURN(const double seconds, TimeOperation(
                                                    backend, [&] { return backend.Copy(x, y); }, rounds));
  rates.bytes_per_s = 8 * static_cast<double>(elements) / seconds;
  return rates;
}

}  // namespace rubato::bench
