// The functions of cuBLAS that the backend calls, on an emulated GPU.

#include <cublas_v2.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/emulation/gpu.h"
#include "kernels/cuda/emulation/host_product.h"

namespace {

using rubato::cuda::emulation::Enqueue;

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
const char* cublasGetStatusString(cublasStatus_t) { return "an emulated GPU refuses it"; }

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
  if (!IsKnown(a_type) || b_type != a_type || (c_type != CUDA_R_32F && c_type != a_type))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const rubato::cuda::emulation::HostProduct product = {
      .m = m,
      .n = n,
      .k = k,
      .batch = batch,
      .alpha = *static_cast<const float*>(alpha),
      .a = {A, a_type, lda, a_stride, transa != CUBLAS_OP_N, tf32},
      .b = {B, b_type, ldb, b_stride, transb != CUBLAS_OP_N, tf32},
      .beta = *static_cast<const float*>(beta),
      .c = C,
      .c_type = c_type,
      .c_column = ldc,
      .c_stride = c_stride,
  };
  const int error = Enqueue(handle->stream, [product] { product.Compute(); });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
