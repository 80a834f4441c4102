#ifndef RUBATO_KERNELS_CUDA_IM2COL_H_
#define RUBATO_KERNELS_CUDA_IM2COL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/device_tensor.h"
#include "kernels/geometry.h"

// What turns convolutions of `images` images into matrix products (Chellapilla, Puri and Simard 2006). With taps =
// channels * kernel * kernel and positions = output_height * output_width, `columns` is [taps, images, positions].
// Images and columns have `type`, an activation's, unless said otherwise. Internal: the launch was refused.
namespace rubato::cuda {

// Each tap's input at each position; zero in the padding.
absl::Status Im2col(Stream stream, const Conv2dGeometry& geometry, int64_t images, ElementType type, const void* x,
                    void* columns);
// dx = for each input the sum, in order of taps, of the columns' elements (float32) that im2col copied it to.
absl::Status Fold(Stream stream, const Conv2dGeometry& geometry, int64_t images, ElementType type, const float* columns,
                  void* dx);
// to [filters, images, positions] from dy [images, filters, positions].
absl::Status GatherFilters(Stream stream, const Conv2dGeometry& geometry, int64_t images, ElementType type,
                           const void* dy, void* to);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_IM2COL_H_
