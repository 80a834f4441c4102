#ifndef RUBATO_KERNELS_CPU_CPU_BACKEND_H_
#define RUBATO_KERNELS_CPU_CPU_BACKEND_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace rubato {

struct CpuBackendOptions {
  // Threads for matrix products and convolutions, 1 to 1024. With 1, all work is done by the caller's thread and none
  // is started (in a portable build OpenBLAS starts some when it is loaded, which then sleep). Everything else always
  // runs on the caller's thread.
  int compute_threads = 1;
  // Convolutions as matrix products even if the build has something faster.
  bool im2col_convolutions = false;
  // Where AllocateForSending puts tensors: so many zeroed bytes that start at a multiple of 64, or null when there is
  // no room for them. Empty: where all other tensors are.
  std::function<std::shared_ptr<void>(size_t bytes)> sending_memory = {};
};

// The host itself: every operation is done when its call returns. Its memory is that of the machine, of which as much
// is free as this process can still take (common/available_memory.h). Results have the same bits on every run on the
// same machine with the same number of threads. InvalidArgument: compute_threads is out of range.
absl::StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(const CpuBackendOptions& options);

}  // namespace rubato

#endif  // RUBATO_KERNELS_CPU_CPU_BACKEND_H_
