#ifndef RUBATO_KERNELS_CPU_ELEMENTWISE_H_
#define RUBATO_KERNELS_CPU_ELEMENTWISE_H_

#include <cstdint>

#include "kernels/backend.h"

// The loops behind the operations of Backend with the same names, on `n` elements in host memory.
namespace rubato::cpu {

void Fill(float value, int64_t n, float* y);
// y may be a or b.
void Add(const float* a, const float* b, int64_t n, float* y);
// y may be a or b.
void Multiply(const float* a, const float* b, int64_t n, bool accumulate, float* y);
// Rows of x_columns and y_columns.
void CopyColumns(const ColumnRange& range, bool accumulate, int64_t rows, const float* x, int64_t x_columns, float* y,
                 int64_t y_columns);
void Axpy(float alpha, const float* x, int64_t n, float* y);
double SumOfSquares(const float* x, int64_t n);
void Scale(float factor, int64_t n, float* y);
// y [rows, channels, inner] += bias [channels], and the gradient of that.
void AddBias(const float* bias, int64_t rows, int64_t channels, int64_t inner, float* y);
void BiasGradient(const float* dy, int64_t rows, int64_t channels, int64_t inner, bool accumulate, float* dbias);

void Activate(Activation activation, const float* x, int64_t n, float* y);
void ActivateBackward(Activation activation, const float* x, const float* y, const float* dy, int64_t n, float* dx);
void Dropout(const DropoutMask& mask, const float* x, int64_t n, float* y);

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_ELEMENTWISE_H_
