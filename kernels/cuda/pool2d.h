#ifndef RUBATO_KERNELS_CUDA_POOL2D_H_
#define RUBATO_KERNELS_CUDA_POOL2D_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/device_tensor.h"
#include "kernels/geometry.h"

// Kernels behind the pooling operations of Backend, on `batch` images in device memory whose elements have `type`, an
// activation's. Gradients are gathered, output by output, so their sums have a fixed order. Internal: the launch was
// refused.
namespace rubato::cuda {

absl::Status MaxPool2d(Stream stream, ElementType type, const Pool2dGeometry& geometry, int64_t batch, const void* x,
                       void* y, int32_t* argmax);
absl::Status MaxPool2dBackward(Stream stream, ElementType type, const Pool2dGeometry& geometry, int64_t batch,
                               const void* dy, const int32_t* argmax, void* dx);
absl::Status AveragePool2d(Stream stream, ElementType type, const Pool2dGeometry& geometry, int64_t batch,
                           const void* x, void* y);
absl::Status AveragePool2dBackward(Stream stream, ElementType type, const Pool2dGeometry& geometry, int64_t batch,
                                   const void* dy, void* dx);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_POOL2D_H_
