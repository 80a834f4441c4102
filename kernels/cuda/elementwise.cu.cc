#include "kernels/cuda/elementwise.h"

#include <cmath>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/philox.h"

namespace rubato::cuda {
namespace {

__global__ void FillKernel(float value, int64_t n, float* y) {
  for (int64_t i = First(); i < n; i += Stride()) y[i] = value;
}

__global__ void AddKernel(const float* a, const float* b, int64_t n, float* y) {
  for (int64_t i = First(); i < n; i += Stride()) y[i] = a[i] + b[i];
}

__global__ void AxpyKernel(float alpha, const float* x, int64_t n, float* y) {
  for (int64_t i = First(); i < n; i += Stride()) y[i] += alpha * x[i];
}

__global__ void ScaleKernel(float alpha, int64_t n, float* y) {
  for (int64_t i = First(); i < n; i += Stride()) y[i] *= alpha;
}

__global__ void AddBiasKernel(const float* bias, int64_t n, int64_t channels, int64_t inner, float* y) {
  for (int64_t i = First(); i < n; i += Stride()) y[i] += bias[i / inner % channels];
}

// The standard normal distribution's cumulative function. erfc keeps its precision where it is small.
__device__ inline float NormalCdf(float x) { return 0.5f * erfcf(-x * 0.707106781186547524f); }

template <Activation kActivation>
__device__ inline float Value(float x) {
  if constexpr (kActivation == Activation::kRelu) return x < 0 ? 0 : x;
  if constexpr (kActivation == Activation::kTanh) return tanhf(x);
  if constexpr (kActivation == Activation::kGelu) return x * NormalCdf(x);
}

template <Activation kActivation>
__device__ inline float Gradient(float x, float y, float dy) {
  if constexpr (kActivation == Activation::kRelu) return y <= 0 ? 0 : dy;
  if constexpr (kActivation == Activation::kTanh) return dy * (1 - y * y);
  if constexpr (kActivation == Activation::kGelu) {
    constexpr float kDensityAtZero = 0.398942280401432678f;  // 1 / sqrt(2 pi)
    return dy * (NormalCdf(x) + x * kDensityAtZero * expf(-0.5f * x * x));
  }
}

template <Activation kActivation>
__global__ void ActivateKernel(const float* x, int64_t n, float* y) {
  for (int64_t i = First(); i < n; i += Stride()) y[i] = Value<kActivation>(x[i]);
}

template <Activation kActivation>
__global__ void ActivateBackwardKernel(const float* x, const float* y, const float* dy, int64_t n, float* dx) {
  for (int64_t i = First(); i < n; i += Stride()) dx[i] = Gradient<kActivation>(x[i], y[i], dy[i]);
}

// One block of four random words for each thread.
__global__ void DropoutKernel(uint64_t seed, uint64_t stream, uint64_t threshold, float scale, const float* x,
                              int64_t n, float* y) {
  for (int64_t block = First(); block * 4 < n; block += Stride()) {
    const uint4 block_words = Philox(seed, stream, block);
    const uint32_t words[4] = {block_words.x, block_words.y, block_words.z, block_words.w};
    for (int i = 0; i < 4; ++i) {
      const int64_t at = block * 4 + i;
      if (at < n) y[at] = words[i] >= threshold ? x[at] * scale : 0.0f;
    }
  }
}

}  // namespace

absl::Status Fill(Stream stream, float value, int64_t n, float* y) {
  RUBATO_CUDA_LAUNCH(FillKernel, Blocks(n), kThreads, stream, value, n, y);
  return absl::OkStatus();
}

absl::Status Add(Stream stream, const float* a, const float* b, int64_t n, float* y) {
  RUBATO_CUDA_LAUNCH(AddKernel, Blocks(n), kThreads, stream, a, b, n, y);
  return absl::OkStatus();
}

absl::Status Axpy(Stream stream, float alpha, const float* x, int64_t n, float* y) {
  RUBATO_CUDA_LAUNCH(AxpyKernel, Blocks(n), kThreads, stream, alpha, x, n, y);
  return absl::OkStatus();
}

absl::Status Scale(Stream stream, float alpha, int64_t n, float* y) {
  if (alpha == 0) return Fill(stream, 0, n, y);
  RUBATO_CUDA_LAUNCH(ScaleKernel, Blocks(n), kThreads, stream, alpha, n, y);
  return absl::OkStatus();
}

absl::Status AddBias(Stream stream, const float* bias, int64_t rows, int64_t channels, int64_t inner, float* y) {
  const int64_t n = rows * channels * inner;
  if (n == 0) return absl::OkStatus();
  RUBATO_CUDA_LAUNCH(AddBiasKernel, Blocks(n), kThreads, stream, bias, n, channels, inner, y);
  return absl::OkStatus();
}

absl::Status Activate(Stream stream, Activation activation, const float* x, int64_t n, float* y) {
  switch (activation) {
    case Activation::kRelu:
      RUBATO_CUDA_LAUNCH(ActivateKernel<Activation::kRelu>, Blocks(n), kThreads, stream, x, n, y);
      break;
    case Activation::kTanh:
      RUBATO_CUDA_LAUNCH(ActivateKernel<Activation::kTanh>, Blocks(n), kThreads, stream, x, n, y);
      break;
    case Activation::kGelu:
      RUBATO_CUDA_LAUNCH(ActivateKernel<Activation::kGelu>, Blocks(n), kThreads, stream, x, n, y);
      break;
  }
  return absl::OkStatus();
}

absl::Status ActivateBackward(Stream stream, Activation activation, const float* x, const float* y, const float* dy,
                              int64_t n, float* dx) {
  switch (activation) {
    case Activation::kRelu:
      RUBATO_CUDA_LAUNCH(ActivateBackwardKernel<Activation::kRelu>, Blocks(n), kThreads, stream, x, y, dy, n, dx);
      break;
    case Activation::kTanh:
      RUBATO_CUDA_LAUNCH(ActivateBackwardKernel<Activation::kTanh>, Blocks(n), kThreads, stream, x, y, dy, n, dx);
      break;
    case Activation::kGelu:
      RUBATO_CUDA_LAUNCH(ActivateBackwardKernel<Activation::kGelu>, Blocks(n), kThreads, stream, x, y, dy, n, dx);
      break;
  }
  return absl::OkStatus();
}

absl::Status Dropout(Stream stream, const DropoutMask& mask, const float* x, int64_t n, float* y) {
  const auto threshold = static_cast<uint64_t>(std::ceil(mask.rate * 0x1p32));
  const auto scale = static_cast<float>(1 / (1 - mask.rate));
  RUBATO_CUDA_LAUNCH(DropoutKernel, Blocks((n + 3) / 4), kThreads, stream, mask.seed, mask.stream, threshold, scale, x,
                     n, y);
  return absl::OkStatus();
}

}  // namespace rubato::cuda
