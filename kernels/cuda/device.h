#ifndef RUBATO_KERNELS_CUDA_DEVICE_H_
#define RUBATO_KERNELS_CUDA_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace rubato::cuda {

// A GPU.
struct Device {
  int index = 0;
  // "NVIDIA H200".
  std::string name;
  int64_t memory_bytes = 0;
  // 90 for 9.0.
  int compute_capability = 0;
};

// What the machine says of itself, as the runtime's numbers: 13000 for CUDA 13.0, 0 for no driver.
struct Versions {
  int driver = 0;
  int runtime = 0;
};

// Whether a program built with this runtime can work with this driver. FailedPrecondition says what is missing.
absl::Status CheckVersions(const Versions& versions);
// What cudaGetDeviceCount said, `error` as its cudaError_t: whether there is a GPU. FailedPrecondition: there is none.
// Otherwise what StatusOf (check.h) makes of the error. Both say where to look.
absl::Status CheckCount(int error, int count);
// Whether there is code in this program for such a GPU. FailedPrecondition: it is too old.
absl::Status CheckCapability(const Device& device);

// How many GPUs the driver has, whether they can be used or not; 0: there is none, or no driver. FailedPrecondition:
// the driver is older than the runtime. Internal: CUDA refused otherwise.
absl::StatusOr<int> CountDevices();

// Looks at GPU `index`, counted from 0 as CUDA counts, and makes no use of it. FailedPrecondition, with what is
// missing and what to do: there is no driver, it is older than the runtime, there is no GPU, there are fewer GPUs, or
// the GPU is too old. Internal: CUDA refused otherwise.
absl::StatusOr<Device> FindDevice(int index);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_DEVICE_H_
