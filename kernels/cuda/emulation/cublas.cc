// The functions of cuBLAS that the backend calls, on an emulated card. Operands and sums have the precision that is
// asked for; the order of the additions is the simplest.

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cuda/emulation/card.h"
#include "kernels/cuda/emulation/round_to_tf32.h"

namespace {

using rubato::cuda::emulation::Enqueue;

struct Matrix {
  const void* data;
  cudaDataType_t type;
  int64_t column, stride;  // Elements from one to the next: columns, and matrices of the batch.
  bool transposed;
  bool tf32;

  float At(int64_t batch, int64_t row, int64_t column_number) const {
    if (transposed) std::swap(row, column_number);
    const int64_t at = batch * stride + column_number * column + row;
    if (type == CUDA_R_16BF) return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]);
    if (type == CUDA_R_16F) return __half2float(static_cast<const __half*>(data)[at]);
    const float element = static_cast<const float*>(data)[at];
    return tf32 ? rubato::cuda::emulation::RoundToTf32(element) : element;
  }
};

bool IsKnown(cudaDataType_t type) { return type == CUDA_R_32F || type == CUDA_R_16BF || type == CUDA_R_16F; }

// Rows and columns of a matrix as it is stored.
bool Fits(int64_t rows, int64_t columns, cublasOperation_t operation, int64_t leading) {
  return leading >= std::max<int64_t>(1, operation == CUBLAS_OP_N ? rows : columns);
}

}  // namespace

struct cublasContext {
  cudaStream_t stream = nullptr;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
const char* cublasGetStatusString(cublasStatus_t) { return "an emulated card refuses it"; }

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                             int64_t m, int64_t n, int64_t k, const void* alpha, const void* A,
                                             cudaDataType_t a_type, int64_t lda, long long int a_stride, const void* B,
                                             cudaDataType_t b_type, int64_t ldb, long long int b_stride,
                                             const void* beta, void* C, cudaDataType_t c_type, int64_t ldc,
                                             long long int c_stride, int64_t batch, cublasComputeType_t compute,
                                             cublasGemmAlgo_t) {
  if (m < 0 || n < 0 || k < 0 || batch < 0 || !Fits(m, k, transa, lda) || !Fits(k, n, transb, ldb) ||
      !Fits(m, n, CUBLAS_OP_N, ldc)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!IsKnown(a_type) || b_type != a_type || c_type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const Matrix a = {A, a_type, lda, a_stride, transa != CUBLAS_OP_N, tf32};
  const Matrix b = {B, b_type, ldb, b_stride, transb != CUBLAS_OP_N, tf32};
  const int error = Enqueue(handle->stream, [=, factor = *static_cast<const float*>(alpha),
                                             kept = *static_cast<const float*>(beta), c = static_cast<float*>(C)] {
    std::vector<float> left(m * k), sums(m);  // By column.
    for (int64_t matrix = 0; matrix < batch; ++matrix) {
      for (int64_t at = 0; at < m * k; ++at) left[at] = a.At(matrix, at % m, at / m);
      for (int64_t column = 0; column < n; ++column) {
        std::fill(sums.begin(), sums.end(), 0.0f);
        for (int64_t i = 0; i < k; ++i) {
          const float right = b.At(matrix, i, column);
          for (int64_t row = 0; row < m; ++row) sums[row] += left[i * m + row] * right;
        }
        float* const results = c + matrix * c_stride + column * ldc;
        // What was there before is not looked at where it does not count: it may be anything.
        for (int64_t row = 0; row < m; ++row) results[row] = factor * sums[row] + (kept == 0 ? 0 : kept * results[row]);
      }
    }
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
