#include "kernels/cuda/format.h"

#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

constexpr int kPack = 4;

template <bool kAdd, int kCount, typename From, typename To>
__device__ inline void ConvertPack(const From* from, To* to) {
  float x[kCount];
  Load<kCount>(from, x);
  if constexpr (kAdd) {
    float y[kCount];
    Load<kCount>(to, y);
    for (int i = 0; i < kCount; ++i) x[i] += y[i];
  }
  Store<kCount>(x, to);
}

template <bool kAdd, typename From, typename To>
__global__ void ConvertKernel(const From* from, int64_t n, To* to) {
  const int64_t packed = n / kPack * kPack;
  for (int64_t i = First() * kPack; i < packed; i += Stride() * kPack) ConvertPack<kAdd, kPack>(from + i, to + i);
  for (int64_t i = packed + First(); i < n; i += Stride()) ConvertPack<kAdd, 1>(from + i, to + i);
}

template <bool kAdd, typename From, typename To>
absl::Status Launch(Stream stream, const void* from, int64_t n, void* to) {
  RUBATO_CUDA_LAUNCH((ConvertKernel<kAdd, From, To>), Blocks(n / kPack), kThreads, stream,
                     static_cast<const From*>(from), n, static_cast<To*>(to));
  return absl::OkStatus();
}

template <typename To>
absl::Status LaunchTo(Stream stream, const void* from, int64_t n, void* to) {
  return Launch<false, float, To>(stream, from, n, to);
}
template <typename From>
absl::Status LaunchFrom(Stream stream, const void* from, int64_t n, void* to) {
  return Launch<false, From, float>(stream, from, n, to);
}
template <typename From>
absl::Status LaunchAdd(Stream stream, const void* from, int64_t n, void* to) {
  return Launch<true, From, float>(stream, from, n, to);
}

}  // namespace

absl::Status Convert(Stream stream, ElementType from_type, const void* from, int64_t n, ElementType to_type, void* to) {
  if (from_type == ElementType::kFloat32) {
    RUBATO_CUDA_FOR_TYPE(to_type, LaunchTo, stream, from, n, to);
  }
  RUBATO_CUDA_FOR_TYPE(from_type, LaunchFrom, stream, from, n, to);
}

absl::Status AddConverted(Stream stream, ElementType from_type, const void* from, int64_t n, float* to) {
  RUBATO_CUDA_FOR_TYPE(from_type, LaunchAdd, stream, from, n, to);
}

}  // namespace rubato::cuda
