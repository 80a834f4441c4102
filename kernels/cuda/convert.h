#ifndef RUBATO_KERNELS_CUDA_CONVERT_H_
#define RUBATO_KERNELS_CUDA_CONVERT_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Element types of a product's operands. For .cu.cc files alone.
namespace rubato::cuda {

// Rounded to nearest even; what is too large becomes infinite.
template <typename T>
__device__ inline T ConvertTo(float x);
template <>
__device__ inline float ConvertTo<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 ConvertTo<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half ConvertTo<__half>(float x) {
  return __float2half_rn(x);
}

}  // namespace rubato::cuda

// Returns function<T>(...) for the T that stands for an ElementFormat (format.h).
#define RUBATO_CUDA_FOR_FORMAT(format, function, ...) \
  switch (format) {                                   \
    case ::rubato::cuda::ElementFormat::kBf16:        \
      return function<__nv_bfloat16>(__VA_ARGS__);    \
    case ::rubato::cuda::ElementFormat::kFp16:        \
      return function<__half>(__VA_ARGS__);           \
    case ::rubato::cuda::ElementFormat::kFloat32:     \
      break;                                          \
  }                                                   \
  return function<float>(__VA_ARGS__)

#endif  // RUBATO_KERNELS_CUDA_CONVERT_H_
