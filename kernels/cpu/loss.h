#ifndef RUBATO_KERNELS_CPU_LOSS_H_
#define RUBATO_KERNELS_CPU_LOSS_H_

#include <cstdint>

// The loops behind the losses of Backend, on outputs [rows, columns] in host memory. `gradient` may be null, or the
// outputs themselves. sums[0] gets the sum of the losses, sums[1] the number of correct examples.
namespace rubato::cpu {

void SoftmaxCrossEntropy(int64_t rows, int64_t columns, const float* logits, const int32_t* classes,
                         float gradient_scale, float* gradient, double* sums);
// Logits of class 1, one in a row.
void BinaryCrossEntropy(int64_t rows, const float* logits, const int32_t* classes, float gradient_scale,
                        float* gradient, double* sums);
void MeanSquaredError(int64_t rows, int64_t columns, const float* outputs, const float* targets, float gradient_scale,
                      float* gradient, double* sums);

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_LOSS_H_
