#ifndef RUBATO_KERNELS_CUDA_NORMALIZATION_H_
#define RUBATO_KERNELS_CUDA_NORMALIZATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/work.h"
#include "kernels/device_tensor.h"

// Kernels behind Backend::LayerNorm and GroupNorm, on device memory; x, y, dy and dx have `type`, an activation's, and
// statistics are summed in float64. Internal: a launch was refused. ResourceExhausted: no scratch memory.
namespace rubato::cuda {

// x [rows, columns].
struct LayerNormShape {
  ElementType type = ElementType::kFloat32;
  int64_t rows = 0, columns = 0;
};

absl::Status LayerNorm(Stream stream, const LayerNormShape& shape, float epsilon, const void* x, const float* gain,
                       const float* bias, void* y, float* mean, float* inverse_deviation);
// dx may be dy, or null; with add_to_dx it is added to, and is not dy.
absl::Status LayerNormBackward(Work& work, const LayerNormShape& shape, const void* x, const float* gain,
                               const float* mean, const float* inverse_deviation, const void* dy, bool accumulate,
                               bool add_to_dx, void* dx, float* dgain, float* dbias);

// x [batch, channels, inner].
struct GroupNormShape {
  ElementType type = ElementType::kFloat32;
  int64_t batch = 0, channels = 0, groups = 1, inner = 0;
};

absl::Status GroupNorm(Stream stream, const GroupNormShape& shape, float epsilon, const void* x, const float* gain,
                       const float* bias, void* y, float* mean, float* inverse_deviation);
// dx may be dy, or null.
absl::Status GroupNormBackward(Work& work, const GroupNormShape& shape, const void* x, const float* gain,
                               const float* mean, const float* inverse_deviation, const void* dy, bool accumulate,
                               void* dx, float* dgain, float* dbias);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_NORMALIZATION_H_
