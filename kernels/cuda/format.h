#ifndef RUBATO_KERNELS_CUDA_FORMAT_H_
#define RUBATO_KERNELS_CUDA_FORMAT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/device_tensor.h"

namespace rubato::cuda {

// to [n] = from, of which one at least is float32; rounded to nearest even, and what is too large becomes infinite.
// Internal: the launch was refused.
absl::Status Convert(Stream stream, ElementType from_type, const void* from, int64_t n, ElementType to_type, void* to);
// to [n] += from, float32.
absl::Status AddConverted(Stream stream, ElementType from_type, const void* from, int64_t n, float* to);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_FORMAT_H_
