#ifndef RUBATO_KERNELS_CPU_POOL2D_H_
#define RUBATO_KERNELS_CPU_POOL2D_H_

#include <cstdint>

#include "kernels/geometry.h"

// The loops behind the pooling operations of Backend, on `batch` images in host memory.
namespace rubato::cpu {

void MaxPool2d(const Pool2dGeometry& geometry, int64_t batch, const float* x, float* y, int32_t* argmax);
void MaxPool2dBackward(const Pool2dGeometry& geometry, int64_t batch, const float* dy, const int32_t* argmax,
                       float* dx);
void AveragePool2d(const Pool2dGeometry& geometry, int64_t batch, const float* x, float* y);
void AveragePool2dBackward(const Pool2dGeometry& geometry, int64_t batch, const float* dy, float* dx);

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_POOL2D_H_
