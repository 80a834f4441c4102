#ifndef RUBATO_KERNELS_CUDA_REDUCTION_H_
#define RUBATO_KERNELS_CUDA_REDUCTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/work.h"
#include "kernels/device_tensor.h"

// Sums over device memory, in float64 and in an order that depends on the sizes alone. Internal: a launch was refused.
// ResourceExhausted: no scratch memory.
namespace rubato::cuda {

// dbias [channels] = the sum of dy [rows, channels, inner], an activation of `type`, over the rest.
absl::Status BiasGradient(Work& work, ElementType type, const void* dy, int64_t rows, int64_t channels, int64_t inner,
                          bool accumulate, float* dbias);
// sum[0] = the sum of squares.
absl::Status SumOfSquares(Work& work, const float* x, int64_t n, bool accumulate, double* sum);
// y *= min(1, max_norm / sqrt(sum[0])) if that is finite.
absl::Status ScaleToNorm(Stream stream, float max_norm, const double* sum, int64_t n, float* y);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_REDUCTION_H_
