#include "kernels/cpu/layer_norm.h"

#include <cmath>
#include <vector>

#include "kernels/cpu/row_statistics.h"

namespace rubato::cpu {

void LayerNorm(float epsilon, int64_t rows, int64_t columns, const float* x, const float* gain, const float* bias,
               float* y, float* mean, float* inverse_deviation) {
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    const double row_mean = Mean(x, columns);
    const double inverse = 1 / std::sqrt(Variance(x, columns, row_mean) + epsilon);
    const float m = mean[row] = static_cast<float>(row_mean);
    const float r = inverse_deviation[row] = static_cast<float>(inverse);
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[i] = gain[i] * ((x[i] - m) * r) + bias[i];
  }
}

void LayerNormBackward(int64_t rows, int64_t columns, const float* x, const float* gain, const float* mean,
                       const float* inverse_deviation, const float* dy, bool accumulate, bool add_to_dx, float* dx,
                       float* dgain, float* dbias) {
  // Doubles, so that the sums over a large batch keep their precision.
  std::vector<double> sums(2 * columns, 0.0);
  double *gain_sum = sums.data(), *bias_sum = gain_sum + columns;
  for (int64_t row = 0; row < rows; ++row) {
    const float* xr = x + row * columns;
    const float* dyr = dy + row * columns;
    const float m = mean[row], r = inverse_deviation[row];
    // Means over the row of the gradient at x_hat, and of that times x_hat.
    double direct = 0, along = 0;
#pragma omp simd reduction(+ : direct, along)
    for (int64_t i = 0; i < columns; ++i) {
      const float x_hat = (xr[i] - m) * r;
      gain_sum[i] += dyr[i] * x_hat;
      bias_sum[i] += dyr[i];
      direct += dyr[i] * gain[i];
      along += dyr[i] * gain[i] * x_hat;
    }
    if (dx == nullptr) continue;
    const auto a = static_cast<float>(direct / columns), b = static_cast<float>(along / columns);
    float* dxr = dx + row * columns;
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) {
      const float gradient = r * (dyr[i] * gain[i] - a - (xr[i] - m) * r * b);
      dxr[i] = add_to_dx ? dxr[i] + gradient : gradient;
    }
  }
  for (int64_t i = 0; i < columns; ++i) {
    dgain[i] = static_cast<float>(gain_sum[i]) + (accumulate ? dgain[i] : 0.0f);
    dbias[i] = static_cast<float>(bias_sum[i]) + (accumulate ? dbias[i] : 0.0f);
  }
}

}  // namespace rubato::cpu
