#ifndef RUBATO_BENCH_GPU_DEVICE_FLAGS_H_
#define RUBATO_BENCH_GPU_DEVICE_FLAGS_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "bench/gpu/device_timing.h"
#include "kernels/backend.h"

namespace rubato::bench {

// What is measured on, and how long.
struct DeviceFlags {
  std::string device = "cuda", precision = "fp32";
  bool no_graphs = false, no_cudnn = false, no_fused_attention = false;
  TimingOptions timing;
};

// `flags` outlives the parsing.
void AddDeviceFlags(CLI::App* app, DeviceFlags* flags);

// Errors are those of CreateCudaBackend and CreateCpuBackend.
absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(const DeviceFlags& flags);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_GPU_DEVICE_FLAGS_H_
