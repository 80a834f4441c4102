#ifndef RUBATO_KERNELS_CUDA_ELEMENTWISE_H_
#define RUBATO_KERNELS_CUDA_ELEMENTWISE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/backend.h"
#include "kernels/cuda/stream.h"

// Kernels behind the element-by-element operations of Backend, on device memory. Each is enqueued on `stream`; sizes
// are at least 0 and have been checked. Elements have `type`, an activation's; addresses are multiples of 16 bytes.
// Internal: the launch was refused.
namespace rubato::cuda {

absl::Status Fill(Stream stream, ElementType type, float value, int64_t n, void* y);
// y may be a or b.
absl::Status Add(Stream stream, ElementType type, const void* a, const void* b, int64_t n, void* y);
// y = a * b, or with `accumulate` y += a * b. y may be a or b.
absl::Status Multiply(Stream stream, ElementType type, const void* a, const void* b, int64_t n, bool accumulate,
                      void* y);
// Rows of x_columns and y_columns.
absl::Status CopyColumns(Stream stream, ElementType type, const ColumnRange& range, bool accumulate, int64_t rows,
                         const void* x, int64_t x_columns, void* y, int64_t y_columns);
absl::Status Axpy(Stream stream, ElementType type, float alpha, const void* x, int64_t n, void* y);
// y *= alpha; with alpha 0, y becomes 0 whatever it was.
absl::Status Scale(Stream stream, ElementType type, float alpha, int64_t n, void* y);
// y [rows, channels, inner].
absl::Status AddBias(Stream stream, ElementType type, const float* bias, int64_t rows, int64_t channels, int64_t inner,
                     void* y);

absl::Status Activate(Stream stream, ElementType type, Activation activation, const void* x, int64_t n, void* y);
absl::Status ActivateBackward(Stream stream, ElementType type, Activation activation, const void* x, const void* y,
                              const void* dy, int64_t n, void* dx);
absl::Status Dropout(Stream stream, ElementType type, const DropoutMask& mask, const void* x, int64_t n, void* y);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_ELEMENTWISE_H_
