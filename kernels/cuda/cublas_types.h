#ifndef RUBATO_KERNELS_CUDA_CUBLAS_TYPES_H_
#define RUBATO_KERNELS_CUDA_CUBLAS_TYPES_H_

#include <cublas_v2.h>

#include "kernels/backend_cuda.h"
#include "kernels/device_tensor.h"

// Our types as cuBLAS and cuBLASLt know them.
namespace rubato::cuda {

// Of a product's operand or result.
inline cudaDataType_t DataType(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return CUDA_R_32F;
    case ElementType::kInt32:
      return CUDA_R_32I;
    case ElementType::kFloat64:
      return CUDA_R_64F;
    case ElementType::kBfloat16:
      return CUDA_R_16BF;
    case ElementType::kFloat16:
      return CUDA_R_16F;
  }
  return CUDA_R_32F;
}

inline cublasComputeType_t ComputeType(MatrixPrecision precision) {
  switch (precision) {
    case MatrixPrecision::kFloat32:
      return CUBLAS_COMPUTE_32F_PEDANTIC;
    case MatrixPrecision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case MatrixPrecision::kBf16:
    case MatrixPrecision::kFp16:
      return CUBLAS_COMPUTE_32F;
  }
  return CUBLAS_COMPUTE_32F_PEDANTIC;
}

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_CUBLAS_TYPES_H_
