#ifndef RUBATO_KERNELS_CPU_ROW_STATISTICS_H_
#define RUBATO_KERNELS_CPU_ROW_STATISTICS_H_

#include <cstdint>

// What normalisations need of n consecutive elements. Sums are in float64.
namespace rubato::cpu {

inline double Mean(const float* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum / static_cast<double>(n);
}

// Around a known mean: the two-pass form does not cancel.
inline double Variance(const float* x, int64_t n, double mean) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return sum / static_cast<double>(n);
}

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_ROW_STATISTICS_H_
