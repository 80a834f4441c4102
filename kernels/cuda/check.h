#ifndef RUBATO_KERNELS_CUDA_CHECK_H_
#define RUBATO_KERNELS_CUDA_CHECK_H_

#include "absl/status/status.h"

namespace rubato::cuda {

// Of a cudaError_t: ResourceExhausted for lack of memory, otherwise Internal; the message has the expression, the
// error's name and what it means.
absl::Status StatusOf(int error, const char* expression);

// Of the last error of this thread, which is cleared: whether a kernel could be launched.
absl::Status LaunchStatus(const char* kernel);

}  // namespace rubato::cuda

// Every call of the CUDA runtime stands in this.
#define RUBATO_CUDA_RETURN_IF_ERROR(expression)                                           \
  do {                                                                                    \
    const auto rubato_cuda_error_ = (expression);                                         \
    if (rubato_cuda_error_ != 0) {                                                        \
      return ::rubato::cuda::StatusOf(static_cast<int>(rubato_cuda_error_), #expression); \
    }                                                                                     \
  } while (false)

#endif  // RUBATO_KERNELS_CUDA_CHECK_H_
