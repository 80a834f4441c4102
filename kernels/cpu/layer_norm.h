#ifndef RUBATO_KERNELS_CPU_LAYER_NORM_H_
#define RUBATO_KERNELS_CPU_LAYER_NORM_H_

#include <cstdint>

// The loops behind Backend::LayerNorm and its gradient, on x [rows, columns] in host memory.
namespace rubato::cpu {

void LayerNorm(float epsilon, int64_t rows, int64_t columns, const float* x, const float* gain, const float* bias,
               float* y, float* mean, float* inverse_deviation);
// dx may be dy, or null; with add_to_dx it is added to, and is not dy.
void LayerNormBackward(int64_t rows, int64_t columns, const float* x, const float* gain, const float* mean,
                       const float* inverse_deviation, const float* dy, bool accumulate, bool add_to_dx, float* dx,
                       float* dgain, float* dbias);

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_LAYER_NORM_H_
