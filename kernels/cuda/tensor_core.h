#ifndef RUBATO_KERNELS_CUDA_TENSOR_CORE_H_
#define RUBATO_KERNELS_CUDA_TENSOR_CORE_H_

#include <cstdint>
#include <cstring>

#include "kernels/cuda/convert.h"

// What a warp does together on tensor cores, with 16-bit elements (PTX ISA, "Warp Level Matrix Instructions"). All
// lanes call, with l = lane / 4 and r = lane % 4. Pairs of elements are in 32 bits, the first in the lower half. For
// .cu.cc files alone.
namespace rubato::cuda {

// A 16 x 16 matrix: (l, 2r) and the next, (l + 8, 2r), (l, 2r + 8), (l + 8, 2r + 8) with theirs.
struct LeftFragment {
  uint32_t pairs[4];
};
// A 16 x 8 matrix: (2r, l) and (2r + 1, l), (2r + 8, l) and (2r + 9, l).
struct RightFragment {
  uint32_t pairs[2];
};
// A 16 x 8 matrix in float32: (l, 2r), (l, 2r + 1), (l + 8, 2r), (l + 8, 2r + 1).
struct SumFragment {
  float values[4];
};

// Rounded to nearest even.
template <typename T>
__device__ inline uint32_t Pair(float low, float high);
template <>
__device__ inline uint32_t Pair<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 elements = __floats2bfloat162_rn(low, high);
  uint32_t pair;
  memcpy(&pair, &elements, sizeof(pair));
  return pair;
}
template <>
__device__ inline uint32_t Pair<__half>(float low, float high) {
  const __half2 elements = __floats2half2_rn(low, high);
  uint32_t pair;
  memcpy(&pair, &elements, sizeof(pair));
  return pair;
}

// The sum of the products of two pairs' elements.
template <typename T>
__device__ inline float Dot(uint32_t a, uint32_t b) {
  T left[2], right[2];
  memcpy(static_cast<void*>(left), &a, sizeof(a));
  memcpy(static_cast<void*>(right), &b, sizeof(b));
  return ToFloat(left[0]) * ToFloat(right[0]) + ToFloat(left[1]) * ToFloat(right[1]);
}

// 2^x to 2 units in the last place, and 0 if that is less than the least normal number.
__device__ float Exp2(float x);

// sum += a * b, elements of type T.
template <typename T>
__device__ void MultiplyAdd(const LeftFragment& a, const RightFragment& b, SumFragment& sum);

// Four 8 x 8 matrices from shared memory, of which lane 8m + i names the row i of matrix m: 8 elements at a multiple of
// 16 bytes. pairs[m] are (l, 2r) and (l, 2r + 1) of matrix m, or of its transpose.
__device__ void LoadMatrices(const void* row, bool transposed, uint32_t (&pairs)[4]);

#ifdef __CUDACC__

__device__ inline float Exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

template <>
__device__ inline void MultiplyAdd<__nv_bfloat16>(const LeftFragment& a, const RightFragment& b, SumFragment& sum) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum.values[0]), "+f"(sum.values[1]), "+f"(sum.values[2]), "+f"(sum.values[3])
      : "r"(a.pairs[0]), "r"(a.pairs[1]), "r"(a.pairs[2]), "r"(a.pairs[3]), "r"(b.pairs[0]), "r"(b.pairs[1]));
}
template <>
__device__ inline void MultiplyAdd<__half>(const LeftFragment& a, const RightFragment& b, SumFragment& sum) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum.values[0]), "+f"(sum.values[1]), "+f"(sum.values[2]), "+f"(sum.values[3])
      : "r"(a.pairs[0]), "r"(a.pairs[1]), "r"(a.pairs[2]), "r"(a.pairs[3]), "r"(b.pairs[0]), "r"(b.pairs[1]));
}

__device__ inline void LoadMatrices(const void* row, bool transposed, uint32_t (&pairs)[4]) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(address)
                 : "memory");
  }
}

#else  // emulation/tensor_core.cc

template <>
void MultiplyAdd<__nv_bfloat16>(const LeftFragment& a, const RightFragment& b, SumFragment& sum);
template <>
void MultiplyAdd<__half>(const LeftFragment& a, const RightFragment& b, SumFragment& sum);

#endif

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_TENSOR_CORE_H_
