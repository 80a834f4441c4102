#ifndef RUBATO_KERNELS_CPU_GROUP_NORM_H_
#define RUBATO_KERNELS_CPU_GROUP_NORM_H_

#include <cstdint>

// The loops behind Backend::GroupNorm and its gradient, on x [batch, channels, inner] in host memory.
namespace rubato::cpu {

struct GroupNormSizes {
  int64_t batch = 0, channels = 0, inner = 0;
  int64_t groups = 1;
};

void GroupNorm(const GroupNormSizes& sizes, float epsilon, const float* x, const float* gain, const float* bias,
               float* y, float* mean, float* inverse_deviation);
// dx may be dy, or null.
void GroupNormBackward(const GroupNormSizes& sizes, const float* x, const float* gain, const float* mean,
                       const float* inverse_deviation, const float* dy, bool accumulate, float* dx, float* dgain,
                       float* dbias);

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_GROUP_NORM_H_
