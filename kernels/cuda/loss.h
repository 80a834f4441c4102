#ifndef RUBATO_KERNELS_CUDA_LOSS_H_
#define RUBATO_KERNELS_CUDA_LOSS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/work.h"

// Kernels behind the losses of Backend, on device memory. `gradient` may be null, or the outputs themselves. sums[0]
// gets the sum of the losses, sums[1] the number of correct examples, both added in an order that depends on the sizes
// alone. Internal: a launch was refused. ResourceExhausted: no scratch memory.
namespace rubato::cuda {

absl::Status SoftmaxCrossEntropy(Work& work, int64_t rows, int64_t columns, const float* logits, const int32_t* classes,
                                 float gradient_scale, float* gradient, double* sums);
// Logits of class 1, one in a row.
absl::Status BinaryCrossEntropy(Work& work, int64_t rows, const float* logits, const int32_t* classes,
                                float gradient_scale, float* gradient, double* sums);
absl::Status MeanSquaredError(Work& work, int64_t rows, int64_t columns, const float* outputs, const float* targets,
                              float gradient_scale, float* gradient, double* sums);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_LOSS_H_
