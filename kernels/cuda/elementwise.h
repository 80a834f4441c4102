#ifndef RUBATO_KERNELS_CUDA_ELEMENTWISE_H_
#define RUBATO_KERNELS_CUDA_ELEMENTWISE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/backend.h"
#include "kernels/cuda/stream.h"

// Kernels behind the element-by-element operations of Backend, on device memory. Each is enqueued on `stream`; sizes
// are at least 0 and have been checked. Internal: the launch was refused.
namespace rubato::cuda {

absl::Status Fill(Stream stream, float value, int64_t n, float* y);
// y may be a or b.
absl::Status Add(Stream stream, const float* a, const float* b, int64_t n, float* y);
absl::Status Axpy(Stream stream, float alpha, const float* x, int64_t n, float* y);
// y *= alpha; with alpha 0, y becomes 0 whatever it was.
absl::Status Scale(Stream stream, float alpha, int64_t n, float* y);
// y [rows, channels, inner].
absl::Status AddBias(Stream stream, const float* bias, int64_t rows, int64_t channels, int64_t inner, float* y);

absl::Status Activate(Stream stream, Activation activation, const float* x, int64_t n, float* y);
absl::Status ActivateBackward(Stream stream, Activation activation, const float* x, const float* y, const float* dy,
                              int64_t n, float* dx);
absl::Status Dropout(Stream stream, const DropoutMask& mask, const float* x, int64_t n, float* y);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_ELEMENTWISE_H_
