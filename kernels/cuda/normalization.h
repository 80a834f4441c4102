#ifndef RUBATO_KERNELS_CUDA_NORMALIZATION_H_
#define RUBATO_KERNELS_CUDA_NORMALIZATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/work.h"

// Kernels behind Backend::LayerNorm and GroupNorm, on device memory; statistics are summed in float64. Internal: a
// launch was refused. ResourceExhausted: no scratch memory.
namespace rubato::cuda {

// x [rows, columns].
absl::Status LayerNorm(Stream stream, float epsilon, int64_t rows, int64_t columns, const float* x, const float* gain,
                       const float* bias, float* y, float* mean, float* inverse_deviation);
// dx may be dy, or null.
absl::Status LayerNormBackward(Work& work, int64_t rows, int64_t columns, const float* x, const float* gain,
                               const float* mean, const float* inverse_deviation, const float* dy, bool accumulate,
                               float* dx, float* dgain, float* dbias);

// x [batch, channels, inner].
struct GroupNormShape {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t groups = 1;
  int64_t inner = 0;
};

absl::Status GroupNorm(Stream stream, const GroupNormShape& shape, float epsilon, const float* x, const float* gain,
                       const float* bias, float* y, float* mean, float* inverse_deviation);
// dx may be dy, or null.
absl::Status GroupNormBackward(Work& work, const GroupNormShape& shape, const float* x, const float* gain,
                               const float* mean, const float* inverse_deviation, const float* dy, bool accumulate,
                               float* dx, float* dgain, float* dbias);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_NORMALIZATION_H_
