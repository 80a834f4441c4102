#ifndef RUBATO_KERNELS_CUDA_NORMALIZATION_H_
#define RUBATO_KERNELS_CUDA_NORMALIZATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/work.h"
#include "kernels/device_tensor.h"

// Kernels behind Backend::LayerNorm and GroupNorm, on device memory; x, y, dy and dx have the shape's `type`, an
// activation's, and statistics are summed in float64. Internal: a launch was refused. ResourceExhausted: no scratch
// memory.
namespace rubato::cuda {

// x [rows, columns].
struct LayerNormShape {
  ElementType type = ElementType::kFloat32;
  int64_t rows = 0, columns = 0;
};

// x [batch, channels, inner].
struct GroupNormShape {
  ElementType type = ElementType::kFloat32;
  int64_t batch = 0, channels = 0, groups = 1, inner = 0;
};

// What a normalisation reads, and from `y` on what it writes.
struct NormForward {
  float epsilon = 0;
  const void* x = nullptr;
  const float *gain = nullptr, *bias = nullptr;
  void* y = nullptr;
  float *mean = nullptr, *inverse_deviation = nullptr;
};

// The same backward. dx may be dy, or null.
struct NormBackward {
  const void* x = nullptr;
  const float *gain = nullptr, *mean = nullptr, *inverse_deviation = nullptr;
  const void* dy = nullptr;
  bool accumulate = false;
  void* dx = nullptr;
  float *dgain = nullptr, *dbias = nullptr;
};

absl::Status LayerNorm(Stream stream, const LayerNormShape& shape, const NormForward& pass);
// With add_to_dx, dx is added to, and is not dy.
absl::Status LayerNormBackward(Work& work, const LayerNormShape& shape, const NormBackward& pass, bool add_to_dx);
absl::Status GroupNorm(Stream stream, const GroupNormShape& shape, const NormForward& pass);
absl::Status GroupNormBackward(Work& work, const GroupNormShape& shape, const NormBackward& pass);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_NORMALIZATION_H_
