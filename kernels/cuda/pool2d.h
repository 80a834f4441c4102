#ifndef RUBATO_KERNELS_CUDA_POOL2D_H_
#define RUBATO_KERNELS_CUDA_POOL2D_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/geometry.h"

// Kernels behind the pooling operations of Backend, on `batch` images in device memory. Gradients are gathered, output
// by output, so their sums have a fixed order. Internal: the launch was refused.
namespace rubato::cuda {

absl::Status MaxPool2d(Stream stream, const Pool2dGeometry& geometry, int64_t batch, const float* x, float* y,
                       int32_t* argmax);
absl::Status MaxPool2dBackward(Stream stream, const Pool2dGeometry& geometry, int64_t batch, const float* dy,
                               const int32_t* argmax, float* dx);
absl::Status AveragePool2d(Stream stream, const Pool2dGeometry& geometry, int64_t batch, const float* x, float* y);
absl::Status AveragePool2dBackward(Stream stream, const Pool2dGeometry& geometry, int64_t batch, const float* dy,
                                   float* dx);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_POOL2D_H_
