#ifndef RUBATO_KERNELS_CUDA_CONVERT_H_
#define RUBATO_KERNELS_CUDA_CONVERT_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/device_tensor.h"

// Elements of activations and of products' operands, which kernels compute with in float32. For .cu.cc files alone.
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

__device__ inline float ToFloat(float x) { return x; }
__device__ inline float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float ToFloat(__half x) { return __half2float(x); }

// Elements of T that a thread reads or writes at once: 16 bytes.
template <typename T>
inline constexpr int kPackElements = static_cast<int>(16 / sizeof(T));

template <typename T, int kCount>
struct alignas(kCount * sizeof(T)) Pack {
  T elements[kCount];
};

// kCount elements, 1 or a power of 2, from an address that is a multiple of their size or of 16 bytes.
template <int kCount, typename T>
__device__ inline void Load(const T* from, float (&to)[kCount]) {
  constexpr int kAtOnce = kCount < kPackElements<T> ? kCount : kPackElements<T>;
#pragma unroll
  for (int i = 0; i < kCount; i += kAtOnce) {
    const auto pack = *reinterpret_cast<const Pack<T, kAtOnce>*>(from + i);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) to[i + j] = ToFloat(pack.elements[j]);
  }
}

template <int kCount, typename T>
__device__ inline void Store(const float (&from)[kCount], T* to) {
  constexpr int kAtOnce = kCount < kPackElements<T> ? kCount : kPackElements<T>;
#pragma unroll
  for (int i = 0; i < kCount; i += kAtOnce) {
    Pack<T, kAtOnce> pack;
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) pack.elements[j] = ConvertTo<T>(from[i + j]);
    *reinterpret_cast<Pack<T, kAtOnce>*>(to + i) = pack;
  }
}

// Internal, for what is no activation's type.
inline absl::Status NoKernelFor(ElementType type) {
  return absl::InternalError(absl::StrCat("no kernel for elements of ", TypeName(type)));
}

}  // namespace rubato::cuda

// Returns function<T>(...) for the T of an activation's ElementType.
#define RUBATO_CUDA_FOR_TYPE(type, function, ...)  \
  switch (type) {                                  \
    case ::rubato::ElementType::kFloat32:          \
      return function<float>(__VA_ARGS__);         \
    case ::rubato::ElementType::kBfloat16:         \
      return function<__nv_bfloat16>(__VA_ARGS__); \
    case ::rubato::ElementType::kFloat16:          \
      return function<__half>(__VA_ARGS__);        \
    case ::rubato::ElementType::kInt32:            \
    case ::rubato::ElementType::kFloat64:          \
      break;                                       \
  }                                                \
  return ::rubato::cuda::NoKernelFor(type)

#endif  // RUBATO_KERNELS_CUDA_CONVERT_H_
