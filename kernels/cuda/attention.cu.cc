#include "kernels/cuda/attention.h"

#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

// Where an element of [pairs, sequence, head_width] is in the tensor that the slice is of.
__device__ inline int64_t SlicedAt(const HeadSlice& s, int64_t packed) {
  const int64_t column = packed % s.head_width, position = packed / s.head_width % s.sequence;
  const int64_t pair = packed / (s.head_width * s.sequence), head = pair % s.heads, example = pair / s.heads;
  return (example * s.sequence + position) * s.position_stride + s.first + head * s.head_width + column;
}

template <typename T>
__global__ void GatherHeadsKernel(HeadSlice slice, int64_t n, const T* from, T* to) {
  for (int64_t i = First(); i < n; i += Stride()) to[i] = from[SlicedAt(slice, i)];
}

template <typename T>
__global__ void ScatterHeadsKernel(HeadSlice slice, int64_t n, const float* from, T* to) {
  for (int64_t i = First(); i < n; i += Stride()) to[SlicedAt(slice, i)] = ConvertTo<T>(from[i]);
}

__device__ inline float BlockMax(float value, float* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) shared[thread] = fmaxf(shared[thread], shared[thread + half]);
    __syncthreads();
  }
  const float max = shared[0];
  __syncthreads();
  return max;
}

// One block of threads for each row of each pair.
template <typename T>
__global__ void CausalSoftmaxKernel(ScoreBlock block, int64_t columns, const float* scores, T* probabilities,
                                    float* log_sum_exp) {
  __shared__ float maxima[kThreads];
  __shared__ double sums[kWarps];
  const int64_t pair = blockIdx.x / block.rows, position = block.begin + blockIdx.x % block.rows;
  const int64_t visible = position + 1;
  scores += blockIdx.x * columns;
  probabilities += blockIdx.x * columns;
  float max = -INFINITY;
  for (int64_t i = threadIdx.x; i < visible; i += kThreads) max = fmaxf(max, scores[i]);
  max = BlockMax(max, maxima);
  double sum = 0;
  for (int64_t i = threadIdx.x; i < visible; i += kThreads) sum += expf(scores[i] - max);
  const auto total = static_cast<float>(BlockSum(sum, sums));
  const float factor = 1 / total;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    probabilities[i] = ConvertTo<T>(i < visible ? expf(scores[i] - max) * factor : 0.0f);
  }
  if (threadIdx.x == 0) log_sum_exp[pair * block.sequence + position] = max + logf(total);
}

template <typename T>
__global__ void CausalSoftmaxBackwardKernel(ScoreBlock block, int64_t columns, const float* scores,
                                            const float* log_sum_exp, const float* dprobabilities, const float* means,
                                            T* probabilities, T* dscores) {
  const int64_t n = block.pairs * block.rows * columns;
  for (int64_t at = First(); at < n; at += Stride()) {
    const int64_t column = at % columns, row = at / columns;
    const int64_t position = block.begin + row % block.rows, statistic = row / block.rows * block.sequence + position;
    const bool visible = column <= position;
    const float p = visible ? expf(scores[at] - log_sum_exp[statistic]) : 0.0f;
    const float d = visible ? p * (dprobabilities[at] - means[statistic]) : 0.0f;
    probabilities[at] = ConvertTo<T>(p);
    dscores[at] = ConvertTo<T>(d);
  }
}

// One warp for each head of each position.
template <typename T>
__global__ void HeadDotsKernel(AttentionGeometry g, int64_t n, const T* y, const T* dy, float* means) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (at >= n) return;
  float sum = 0;
  for (int64_t i = at * g.head_width + lane; i < (at + 1) * g.head_width; i += 32)
    sum += ToFloat(y[i]) * ToFloat(dy[i]);
  for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
  if (lane != 0) return;
  const int64_t head = at % g.heads, position = at / g.heads % g.sequence, example = at / (g.heads * g.sequence);
  means[(example * g.heads + head) * g.sequence + position] = sum;
}

template <typename T>
absl::Status LaunchGather(Stream stream, const HeadSlice& slice, int64_t n, const void* from, void* to) {
  RUBATO_CUDA_LAUNCH(GatherHeadsKernel<T>, Blocks(n), kThreads, stream, slice, n, static_cast<const T*>(from),
                     static_cast<T*>(to));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchScatter(Stream stream, const HeadSlice& slice, int64_t n, const float* from, void* to) {
  RUBATO_CUDA_LAUNCH(ScatterHeadsKernel<T>, Blocks(n), kThreads, stream, slice, n, from, static_cast<T*>(to));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchDots(Stream stream, const AttentionGeometry& geometry, int64_t n, const void* y, const void* dy,
                        float* means) {
  const auto blocks = static_cast<unsigned>((n * 32 + kThreads - 1) / kThreads);
  RUBATO_CUDA_LAUNCH(HeadDotsKernel<T>, blocks, kThreads, stream, geometry, n, static_cast<const T*>(y),
                     static_cast<const T*>(dy), means);
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchSoftmax(Stream stream, const ScoreBlock& block, const float* scores, void* probabilities,
                           float* log_sum_exp) {
  RUBATO_CUDA_LAUNCH(CausalSoftmaxKernel<T>, static_cast<unsigned>(block.pairs * block.rows), kThreads, stream, block,
                     block.columns(), scores, static_cast<T*>(probabilities), log_sum_exp);
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchSoftmaxBackward(Stream stream, const ScoreBlock& block, const float* scores,
                                   const float* log_sum_exp, const float* dprobabilities, const float* means,
                                   void* probabilities, void* dscores) {
  RUBATO_CUDA_LAUNCH(CausalSoftmaxBackwardKernel<T>, Blocks(block.pairs * block.rows * block.columns()), kThreads,
                     stream, block, block.columns(), scores, log_sum_exp, dprobabilities, means,
                     static_cast<T*>(probabilities), static_cast<T*>(dscores));
  return absl::OkStatus();
}

int64_t Elements(const HeadSlice& slice, int64_t batch) {
  return batch * slice.heads * slice.sequence * slice.head_width;
}

}  // namespace

absl::Status GatherHeads(Stream stream, const HeadSlice& slice, int64_t batch, ElementType type, const void* from,
                         void* to) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchGather, stream, slice, Elements(slice, batch), from, to);
}

absl::Status ScatterHeads(Stream stream, const HeadSlice& slice, int64_t batch, const float* from, ElementType type,
                          void* to) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchScatter, stream, slice, Elements(slice, batch), from, to);
}

absl::Status CausalSoftmax(Stream stream, const ScoreBlock& block, ElementType type, const float* scores,
                           void* probabilities, float* log_sum_exp) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchSoftmax, stream, block, scores, probabilities, log_sum_exp);
}

absl::Status CausalSoftmaxBackward(Stream stream, const ScoreBlock& block, ElementType type, const float* scores,
                                   const float* log_sum_exp, const float* dprobabilities, const float* means,
                                   void* probabilities, void* dscores) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchSoftmaxBackward, stream, block, scores, log_sum_exp, dprobabilities, means,
                       probabilities, dscores);
}

absl::Status HeadDots(Stream stream, const AttentionGeometry& geometry, int64_t batch, ElementType type, const void* y,
                      const void* dy, float* means) {
  const int64_t n = batch * geometry.sequence * geometry.heads;
  if (n == 0) return absl::OkStatus();
  RUBATO_CUDA_FOR_TYPE(type, LaunchDots, stream, geometry, n, y, dy, means);
}

}  // namespace rubato::cuda
