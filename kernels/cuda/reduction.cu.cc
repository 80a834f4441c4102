#include "kernels/cuda/reduction.h"

#include "kernels/cuda/column_sums.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

template <typename T>
struct Element {
  const T* x;
  int64_t columns;
  __device__ Terms<1> operator()(int64_t row, int64_t column) const { return {{ToFloat(x[row * columns + column])}}; }
};

struct PlaneSum {
  const double* sums;
  int64_t channels;
  __device__ Terms<1> operator()(int64_t row, int64_t channel) const { return {{sums[row * channels + channel]}}; }
};

// One block for each plane of `inner` elements.
template <typename T>
__global__ void PlaneSums(const T* x, int64_t inner, double* sums) {
  __shared__ double shared[kWarps];
  const T* plane = x + blockIdx.x * inner;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < inner; i += kThreads) sum += ToFloat(plane[i]);
  sum = BlockSum(sum, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void PartialSquares(const float* x, int64_t n, double* partials) {
  __shared__ double shared[kWarps];
  double sum = 0;
  for (int64_t i = First(); i < n; i += Stride()) sum += static_cast<double>(x[i]) * x[i];
  sum = BlockSum(sum, shared);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

// By one block.
__global__ void FinishSquares(const double* partials, int count, bool accumulate, double* to) {
  __shared__ double shared[kWarps];
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) sum += partials[i];
  sum = BlockSum(sum, shared);
  if (threadIdx.x == 0) *to = sum + (accumulate ? *to : 0.0);
}

__global__ void ScaleToNormKernel(float max_norm, const double* sum_of_squares, int64_t n, float* y) {
  const double squares = *sum_of_squares;
  const double norm = sqrt(squares);
  if (!isfinite(squares) || !(norm > max_norm)) return;
  const auto factor = static_cast<float>(max_norm / norm);
  for (int64_t i = First(); i < n; i += Stride()) y[i] *= factor;
}

template <typename T>
absl::Status LaunchBiasGradient(Work& work, const void* gradient, int64_t rows, int64_t channels, int64_t inner,
                                bool accumulate, float* dbias) {
  const T* const dy = static_cast<const T*>(gradient);
  const SumTargets<1> to = {{dbias}};
  if (inner == 1) return ColumnSums<1>(work, rows, channels, Element<T>{dy, channels}, accumulate, to);
  const int64_t planes = rows * channels;
  RUBATO_ASSIGN_OR_RETURN(double* sums, work.Scratch<double>(planes));
  if (planes > 0) {
    RUBATO_CUDA_LAUNCH(PlaneSums<T>, static_cast<unsigned>(planes), kThreads, work.stream(), dy, inner, sums);
  }
  return ColumnSums<1>(work, rows, channels, PlaneSum{sums, channels}, accumulate, to);
}

}  // namespace

absl::Status BiasGradient(Work& work, ElementType type, const void* dy, int64_t rows, int64_t channels, int64_t inner,
                          bool accumulate, float* dbias) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchBiasGradient, work, dy, rows, channels, inner, accumulate, dbias);
}

absl::Status SumOfSquares(Work& work, const float* x, int64_t n, bool accumulate, double* sum) {
  const unsigned blocks = Blocks(n);
  RUBATO_ASSIGN_OR_RETURN(double* partials, work.Scratch<double>(blocks));
  RUBATO_CUDA_LAUNCH(PartialSquares, blocks, kThreads, work.stream(), x, n, partials);
  RUBATO_CUDA_LAUNCH(FinishSquares, 1, kThreads, work.stream(), partials, static_cast<int>(blocks), accumulate, sum);
  return absl::OkStatus();
}

absl::Status ScaleToNorm(Stream stream, float max_norm, const double* sum, int64_t n, float* y) {
  RUBATO_CUDA_LAUNCH(ScaleToNormKernel, Blocks(n), kThreads, stream, max_norm, sum, n, y);
  return absl::OkStatus();
}

}  // namespace rubato::cuda
