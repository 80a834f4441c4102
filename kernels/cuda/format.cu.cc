#include "kernels/cuda/format.h"

#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

template <typename T>
__global__ void ConvertKernel(const float* from, int64_t n, T* to) {
  for (int64_t i = First(); i < n; i += Stride()) to[i] = ConvertTo<T>(from[i]);
}

template <typename T>
absl::Status Launch(Stream stream, const float* from, int64_t n, void* to) {
  RUBATO_CUDA_LAUNCH(ConvertKernel<T>, Blocks(n), kThreads, stream, from, n, static_cast<T*>(to));
  return absl::OkStatus();
}

}  // namespace

absl::Status Convert(Stream stream, ElementFormat format, const float* from, int64_t n, void* to) {
  RUBATO_CUDA_FOR_FORMAT(format, Launch, stream, from, n, to);
}

}  // namespace rubato::cuda
