#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/random.h"
#include "kernels/cpu/vector_math.h"

// `omp simd` promises that the iterations of a loop are independent, even if output and input are the same array,
// which __restrict would forbid.

namespace rubato::cpu {
namespace {

// The rational approximation of Eigen's ptanh, within a few units in the last place. Beyond the limit tanh rounds to
// one. The order of the comparisons lets NaN through.
inline float FastTanh(float x) {
  constexpr float kLimit = 7.90531110763549805f;
  x = kLimit < x ? kLimit : x;
  x = x < -kLimit ? -kLimit : x;
  const float x2 = x * x;
  float p = -2.76076847742355e-16f;
  p = p * x2 + 2.00018790482477e-13f;
  p = p * x2 + -8.60467152213735e-11f;
  p = p * x2 + 5.12229709037114e-08f;
  p = p * x2 + 1.48572235717979e-05f;
  p = p * x2 + 6.37261928875436e-04f;
  p = p * x2 + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * x2 + 1.18534705686654e-04f;
  q = q * x2 + 2.26843463243900e-03f;
  q = q * x2 + 4.89352518554385e-03f;
  return x * p / q;
}

inline float GeluDerivative(float x) {
  constexpr float kDensityAtZero = 0.398942280401432678f;  // 1 / sqrt(2 pi)
  return NormalCdf(x) + x * kDensityAtZero * FastExp(-0.5f * x * x);
}

}  // namespace

void Fill(float value, int64_t n, float* y) { std::fill(y, y + n, value); }

void Add(const float* a, const float* b, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

void Multiply(const float* a, const float* b, int64_t n, bool accumulate, float* y) {
  if (accumulate) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] += a[i] * b[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
  }
}

void CopyColumns(const ColumnRange& range, bool accumulate, int64_t rows, const float* x, int64_t x_columns, float* y,
                 int64_t y_columns) {
  x += range.from;
  y += range.to;
  for (int64_t row = 0; row < rows; ++row, x += x_columns, y += y_columns) {
    if (!accumulate) {
      std::copy_n(x, range.count, y);
      continue;
    }
#pragma omp simd
    for (int64_t i = 0; i < range.count; ++i) y[i] += x[i];
  }
}

void Axpy(float alpha, const float* __restrict x, int64_t n, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] += alpha * x[i];
}

double SumOfSquares(const float* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

void Scale(float factor, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}

void AddBias(const float* __restrict bias, int64_t rows, int64_t channels, int64_t inner, float* __restrict y) {
  for (int64_t row = 0; row < rows; ++row) {
    if (inner == 1) {
      for (int64_t c = 0; c < channels; ++c) y[c] += bias[c];
      y += channels;
      continue;
    }
    for (int64_t c = 0; c < channels; ++c, y += inner) {
      const float b = bias[c];
      for (int64_t i = 0; i < inner; ++i) y[i] += b;
    }
  }
}

void BiasGradient(const float* __restrict dy, int64_t rows, int64_t channels, int64_t inner, bool accumulate,
                  float* __restrict dbias) {
  std::vector<double> sums(channels, 0.0);
  double* __restrict sum = sums.data();
  for (int64_t row = 0; row < rows; ++row) {
    if (inner == 1) {
      for (int64_t c = 0; c < channels; ++c) sum[c] += dy[c];
      dy += channels;
      continue;
    }
    for (int64_t c = 0; c < channels; ++c, dy += inner) {
      double plane = 0;
#pragma omp simd reduction(+ : plane)
      for (int64_t i = 0; i < inner; ++i) plane += dy[i];
      sum[c] += plane;
    }
  }
  for (int64_t c = 0; c < channels; ++c) dbias[c] = static_cast<float>(sum[c]) + (accumulate ? dbias[c] : 0.0f);
}

void Activate(Activation activation, const float* x, int64_t n, float* y) {
  switch (activation) {
    case Activation::kRelu:
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0 : x[i];
      break;
    case Activation::kTanh:
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] = FastTanh(x[i]);
      break;
    case Activation::kGelu:
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] = x[i] * NormalCdf(x[i]);
      break;
  }
}

void ActivateBackward(Activation activation, const float* x, const float* y, const float* dy, int64_t n, float* dx) {
  switch (activation) {
    case Activation::kRelu:
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        // Both are loaded on every path, or the loop would keep a branch.
        const float output = y[i], gradient = dy[i];
        dx[i] = output <= 0 ? 0.0f : gradient;
      }
      break;
    case Activation::kTanh:
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
      break;
    case Activation::kGelu:
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * GeluDerivative(x[i]);
      break;
  }
}

void Dropout(const DropoutMask& mask, const float* x, int64_t n, float* y) {
  const auto threshold = static_cast<uint64_t>(std::ceil(mask.rate * 0x1p32));
  const float scale = static_cast<float>(1 / (1 - mask.rate));
  for (int64_t block = 0; block * 4 < n; ++block) {
    const std::array<uint32_t, 4> words = PhiloxBlock(mask.seed, mask.stream, block);
    const int64_t end = std::min<int64_t>(4, n - block * 4);
    for (int64_t i = 0; i < end; ++i) {
      const int64_t at = block * 4 + i;
      y[at] = words[i] >= threshold ? x[at] * scale : 0.0f;
    }
  }
}

}  // namespace rubato::cpu
