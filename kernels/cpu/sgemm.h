#ifndef RUBATO_KERNELS_CPU_SGEMM_H_
#define RUBATO_KERNELS_CPU_SGEMM_H_

#include <cstdint>

#include "absl/status/status.h"

namespace rubato::cpu {

// From the beginning of a row of each matrix to that of the next, in elements.
struct RowStrides {
  int64_t a = 0, b = 0, c = 0;
};

// c [m, n] = alpha * op(a) [m, k] op(b) [k, n] + beta * c, row-major: the rows of a are k long, or m long when it is
// transposed. The same bits on every call with the same `threads`, 1 and up; with 1, all work is the caller's thread's.
// Internal: the library refused.
absl::Status Sgemm(int threads, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float* a, const float* b, float beta, float* c, const RowStrides& strides);

// Of dense matrices.
inline absl::Status Sgemm(int threads, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                          const float* a, const float* b, float beta, float* c) {
  return Sgemm(threads, transpose_a, transpose_b, m, n, k, alpha, a, b, beta, c,
               {.a = transpose_a ? m : k, .b = transpose_b ? k : n, .c = n});
}

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_SGEMM_H_
