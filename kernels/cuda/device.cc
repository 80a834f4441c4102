#include "kernels/cuda/device.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cuda/check.h"

namespace rubato::cuda {
namespace {

// The first architecture in bazel/cuda.bzl.
constexpr int kOldestCapability = 80;

std::string VersionText(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

std::string CapabilityText(int capability) { return absl::StrCat(capability / 10, ".", capability % 10); }

absl::StatusOr<Versions> AskForVersions() {
  Versions versions;
  RUBATO_CUDA_RETURN_IF_ERROR(cudaDriverGetVersion(&versions.driver));
  RUBATO_CUDA_RETURN_IF_ERROR(cudaRuntimeGetVersion(&versions.runtime));
  return versions;
}

}  // namespace

absl::Status CheckVersions(const Versions& versions) {
  if (versions.driver == 0) {
    return absl::FailedPreconditionError("there is no NVIDIA driver on this machine (libcuda.so.1 was not found)");
  }
  // Within a major version any driver can run any program's machine code.
  if (versions.driver / 1000 >= versions.runtime / 1000) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the NVIDIA driver supports CUDA up to ", VersionText(versions.driver),
                   ", and this program was built with CUDA ", VersionText(versions.runtime), ": update the driver"));
}

absl::Status CheckCount(int error, int count) {
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    (void)cudaGetLastError();
    return absl::FailedPreconditionError(
        "the NVIDIA driver finds no GPU on this machine: nvidia-smi lists those that there are, and "
        "CUDA_VISIBLE_DEVICES may hide them");
  }
  const absl::Status status = StatusOf(error, "cudaGetDeviceCount");
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), ": nvidia-smi says whether the driver is loaded and works"));
}

absl::Status CheckCapability(const Device& device) {
  if (device.compute_capability >= kOldestCapability) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "GPU ", device.index, " (", device.name, ") has compute capability ", CapabilityText(device.compute_capability),
      "; at least ", CapabilityText(kOldestCapability), " is needed"));
}

absl::StatusOr<int> CountDevices() {
  RUBATO_ASSIGN_OR_RETURN(const Versions versions, AskForVersions());
  if (versions.driver == 0) return 0;
  RUBATO_RETURN_IF_ERROR(CheckVersions(versions));
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  const absl::Status status = CheckCount(error, count);
  if (absl::IsFailedPrecondition(status)) return 0;
  RUBATO_RETURN_IF_ERROR(status);
  return count;
}

absl::StatusOr<Device> FindDevice(int index) {
  RUBATO_ASSIGN_OR_RETURN(const Versions versions, AskForVersions());
  RUBATO_RETURN_IF_ERROR(CheckVersions(versions));
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  RUBATO_RETURN_IF_ERROR(CheckCount(error, count));
  if (index < 0 || index >= count) {
    return absl::FailedPreconditionError(absl::StrCat("there is no GPU ", index, ": this machine has ", count,
                                                      count == 1 ? " GPU" : " GPUs", ", counted from 0"));
  }
  cudaDeviceProp properties;
  RUBATO_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, index));
  const Device device = {.index = index,
                         .name = properties.name,
                         .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem),
                         .compute_capability = properties.major * 10 + properties.minor};
  RUBATO_RETURN_IF_ERROR(CheckCapability(device));
  return device;
}

}  // namespace rubato::cuda
