#include "kernels/cuda/check.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"

namespace rubato::cuda {

absl::Status StatusOf(int error, const char* expression) {
  const auto code = static_cast<cudaError_t>(error);
  if (code == cudaSuccess) return absl::OkStatus();
  const std::string message =
      absl::StrCat(expression, ": ", cudaGetErrorName(code), " (", error, "), ", cudaGetErrorString(code));
  // Some errors stay with the thread until they are read, and would be taken for those of a later launch.
  (void)cudaGetLastError();
  return code == cudaErrorMemoryAllocation ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

absl::Status LaunchStatus(const char* kernel) { return StatusOf(static_cast<int>(cudaGetLastError()), kernel); }

}  // namespace rubato::cuda
