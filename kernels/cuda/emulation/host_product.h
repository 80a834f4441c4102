#ifndef RUBATO_KERNELS_CUDA_EMULATION_HOST_PRODUCT_H_
#define RUBATO_KERNELS_CUDA_EMULATION_HOST_PRODUCT_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cuda/emulation/round_to_tf32.h"

// Products of matrices for emulated libraries, column-major as theirs. Operands and sums have the precision that is
// asked for; the order of the additions is upwards, or downwards if another library shall have other bits.
namespace rubato::cuda::emulation {

inline float Element(cudaDataType_t type, const void* data, int64_t at) {
  if (type == CUDA_R_16BF) return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]);
  if (type == CUDA_R_16F) return __half2float(static_cast<const __half*>(data)[at]);
  return static_cast<const float*>(data)[at];
}
inline void SetElement(cudaDataType_t type, void* data, int64_t at, float element) {
  if (type == CUDA_R_16BF) {
    static_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(element);
  } else if (type == CUDA_R_16F) {
    static_cast<__half*>(data)[at] = __float2half_rn(element);
  } else {
    static_cast<float*>(data)[at] = element;
  }
}

struct HostMatrix {
  const void* data = nullptr;
  cudaDataType_t type = CUDA_R_32F;
  int64_t column = 0, stride = 0;  // Elements from one to the next: columns, and matrices of the batch.
  bool transposed = false;
  bool tf32 = false;

  float At(int64_t batch, int64_t row, int64_t column_number) const {
    if (transposed) std::swap(row, column_number);
    const float element = Element(type, data, batch * stride + column_number * column + row);
    return tf32 ? RoundToTf32(element) : element;
  }
};

// c = alpha * a [m, k] * b [k, n] + beta * c, plus bias [m] in each column if there is one, of c's type.
struct HostProduct {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  float alpha = 1;
  HostMatrix a, b;
  float beta = 0;
  const void* bias = nullptr;
  void* c = nullptr;
  cudaDataType_t c_type = CUDA_R_32F;
  int64_t c_column = 0, c_stride = 0;
  bool downwards = false;

  void Compute() const {
    std::vector<float> left(m * k), sums(m);  // By column.
    for (int64_t matrix = 0; matrix < batch; ++matrix) {
      for (int64_t at = 0; at < m * k; ++at) left[at] = a.At(matrix, at % m, at / m);
      for (int64_t column = 0; column < n; ++column) {
        std::fill(sums.begin(), sums.end(), 0.0f);
        for (int64_t term = 0; term < k; ++term) {
          const int64_t i = downwards ? k - 1 - term : term;
          const float right = b.At(matrix, i, column);
          for (int64_t row = 0; row < m; ++row) sums[row] += left[i * m + row] * right;
        }
        for (int64_t row = 0; row < m; ++row) {
          const int64_t at = matrix * c_stride + column * c_column + row;
          // What was there before is not looked at if it does not count: it may be anything.
          const float before = beta == 0 ? 0 : beta * Element(c_type, c, at);
          SetElement(c_type, c, at, alpha * sums[row] + before + (bias == nullptr ? 0 : Element(c_type, bias, row)));
        }
      }
    }
  }
};

}  // namespace rubato::cuda::emulation

#endif  // RUBATO_KERNELS_CUDA_EMULATION_HOST_PRODUCT_H_
