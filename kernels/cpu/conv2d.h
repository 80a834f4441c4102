#ifndef RUBATO_KERNELS_CPU_CONV2D_H_
#define RUBATO_KERNELS_CPU_CONV2D_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "kernels/geometry.h"

namespace rubato::cpu {

// Two-dimensional convolutions on `batch` images in host memory; shapes as in Backend::Conv2d. Keeps scratch memory and
// whatever a library prepares for each geometry. Not thread-safe. The same bits on every call with the same number of
// threads. Internal: the library refused.
class Conv2d {
 public:
  virtual ~Conv2d() = default;
  virtual absl::Status Forward(const Conv2dGeometry& geometry, int64_t batch, const float* x, const float* weight,
                               float* y) = 0;
  virtual absl::Status BackwardData(const Conv2dGeometry& geometry, int64_t batch, const float* dy, const float* weight,
                                    float* dx) = 0;
  virtual absl::Status BackwardWeight(const Conv2dGeometry& geometry, int64_t batch, const float* x, const float* dy,
                                      bool accumulate, float* dweight) = 0;
};

// As matrix products over im2col matrices, one image after another (Chellapilla, Puri and Simard 2006).
std::unique_ptr<Conv2d> NewIm2colConv2d(int threads);

// The fastest there is in this build: oneDNN's, or the above in a portable build.
std::unique_ptr<Conv2d> NewConv2d(int threads);

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_CONV2D_H_
