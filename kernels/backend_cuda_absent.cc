#include "kernels/backend_cuda.h"

namespace rubato {

absl::Status CheckCudaDevice(int) {
  return absl::FailedPreconditionError("this program was built without a CUDA toolkit");
}

absl::StatusOr<int> CountCudaDevices() { return 0; }

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const CudaBackendOptions& options) {
  return CheckCudaDevice(options.device_index);
}

}  // namespace rubato
