#include "kernels/cuda/normalization.h"

#include "kernels/cuda/column_sums.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

// Mean and 1 / sqrt(variance + epsilon) of a row, by one block. The two-pass form does not cancel.
struct Statistics {
  float mean, inverse_deviation;
};

__device__ Statistics RowStatistics(const float* x, int64_t n, float epsilon, double* shared) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += x[i];
  const double mean = BlockSum(sum, shared) / static_cast<double>(n);
  double squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) squares += (x[i] - mean) * (x[i] - mean);
  const double variance = BlockSum(squares, shared) / static_cast<double>(n);
  return {static_cast<float>(mean), static_cast<float>(1 / sqrt(variance + epsilon))};
}

// One block for each row.
__global__ void LayerNormKernel(float epsilon, int64_t columns, const float* x, const float* gain, const float* bias,
                                float* y, float* mean, float* inverse_deviation) {
  __shared__ double shared[kThreads];
  const int64_t row = blockIdx.x;
  x += row * columns;
  y += row * columns;
  const Statistics s = RowStatistics(x, columns, epsilon, shared);
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    y[i] = gain[i] * ((x[i] - s.mean) * s.inverse_deviation) + bias[i];
  }
  if (threadIdx.x == 0) {
    mean[row] = s.mean;
    inverse_deviation[row] = s.inverse_deviation;
  }
}

struct LayerNormTerms {
  int64_t columns;
  const float *x, *dy, *mean, *inverse_deviation;
  __device__ Terms<2> operator()(int64_t row, int64_t column) const {
    const int64_t at = row * columns + column;
    const float x_hat = (x[at] - mean[row]) * inverse_deviation[row];
    return {{dy[at] * x_hat, dy[at]}};
  }
};

// One block for each row. dx may be dy: an element is read and written by one thread.
__global__ void LayerNormInputGradient(int64_t columns, const float* x, const float* gain, const float* mean,
                                       const float* inverse_deviation, const float* dy, float* dx) {
  __shared__ double shared[kThreads];
  const int64_t row = blockIdx.x;
  x += row * columns;
  dy += row * columns;
  dx += row * columns;
  const float m = mean[row], r = inverse_deviation[row];
  double direct = 0, along = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    direct += dy[i] * gain[i];
    along += dy[i] * gain[i] * ((x[i] - m) * r);
  }
  const auto a = static_cast<float>(BlockSum(direct, shared) / static_cast<double>(columns));
  const auto b = static_cast<float>(BlockSum(along, shared) / static_cast<double>(columns));
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) dx[i] = r * (dy[i] * gain[i] - a - (x[i] - m) * r * b);
}

// One block for each group of each example.
__global__ void GroupNormKernel(GroupNormShape shape, float epsilon, const float* x, const float* gain,
                                const float* bias, float* y, float* mean, float* inverse_deviation) {
  __shared__ double shared[kThreads];
  const int64_t at = blockIdx.x, channels = shape.channels / shape.groups, elements = channels * shape.inner;
  const int64_t first = at % shape.groups * channels;
  x += at * elements;
  y += at * elements;
  const Statistics s = RowStatistics(x, elements, epsilon, shared);
  for (int64_t i = threadIdx.x; i < elements; i += kThreads) {
    const int64_t channel = first + i / shape.inner;
    y[i] = gain[channel] * ((x[i] - s.mean) * s.inverse_deviation) + bias[channel];
  }
  if (threadIdx.x == 0) {
    mean[at] = s.mean;
    inverse_deviation[at] = s.inverse_deviation;
  }
}

// Sums over one channel's plane of its gradient, and of that times x_hat: [batch, channels]. One block for each.
__global__ void GroupNormPlaneSums(GroupNormShape shape, const float* x, const float* mean,
                                   const float* inverse_deviation, const float* dy, double* direct, double* along) {
  __shared__ double shared[kThreads];
  const int64_t plane = blockIdx.x, group = plane / (shape.channels / shape.groups);
  const float m = mean[group], r = inverse_deviation[group];
  x += plane * shape.inner;
  dy += plane * shape.inner;
  double plain = 0, times = 0;
  for (int64_t i = threadIdx.x; i < shape.inner; i += kThreads) {
    plain += dy[i];
    times += dy[i] * ((x[i] - m) * r);
  }
  plain = BlockSum(plain, shared);
  times = BlockSum(times, shared);
  if (threadIdx.x == 0) {
    direct[plane] = plain;
    along[plane] = times;
  }
}

struct GroupNormTerms {
  int64_t channels;
  const double *direct, *along;
  __device__ Terms<2> operator()(int64_t row, int64_t channel) const {
    const int64_t at = row * channels + channel;
    return {{along[at], direct[at]}};
  }
};

// One block for each group of each example. dx may be dy.
__global__ void GroupNormInputGradient(GroupNormShape shape, const float* x, const float* gain, const float* mean,
                                       const float* inverse_deviation, const double* direct, const double* along,
                                       const float* dy, float* dx) {
  __shared__ double shared[kThreads];
  const int64_t at = blockIdx.x, channels = shape.channels / shape.groups, elements = channels * shape.inner;
  const int64_t first = at % shape.groups * channels;
  double plain = 0, times = 0;
  for (int64_t c = threadIdx.x; c < channels; c += kThreads) {
    plain += direct[at * channels + c] * gain[first + c];
    times += along[at * channels + c] * gain[first + c];
  }
  const auto a = static_cast<float>(BlockSum(plain, shared) / static_cast<double>(elements));
  const auto b = static_cast<float>(BlockSum(times, shared) / static_cast<double>(elements));
  const float m = mean[at], r = inverse_deviation[at];
  x += at * elements;
  dy += at * elements;
  dx += at * elements;
  for (int64_t i = threadIdx.x; i < elements; i += kThreads) {
    dx[i] = r * (dy[i] * gain[first + i / shape.inner] - a - (x[i] - m) * r * b);
  }
}

}  // namespace

absl::Status LayerNorm(Stream stream, float epsilon, int64_t rows, int64_t columns, const float* x, const float* gain,
                       const float* bias, float* y, float* mean, float* inverse_deviation) {
  if (rows == 0) return absl::OkStatus();
  RUBATO_CUDA_LAUNCH(LayerNormKernel, static_cast<unsigned>(rows), kThreads, stream, epsilon, columns, x, gain, bias, y,
                     mean, inverse_deviation);
  return absl::OkStatus();
}

absl::Status LayerNormBackward(Work& work, int64_t rows, int64_t columns, const float* x, const float* gain,
                               const float* mean, const float* inverse_deviation, const float* dy, bool accumulate,
                               float* dx, float* dgain, float* dbias) {
  // First, while dy is what it was.
  RUBATO_RETURN_IF_ERROR(ColumnSums<2>(work, rows, columns, LayerNormTerms{columns, x, dy, mean, inverse_deviation},
                                       accumulate, SumTargets<2>{{dgain, dbias}}));
  if (dx == nullptr || rows == 0) return absl::OkStatus();
  RUBATO_CUDA_LAUNCH(LayerNormInputGradient, static_cast<unsigned>(rows), kThreads, work.stream(), columns, x, gain,
                     mean, inverse_deviation, dy, dx);
  return absl::OkStatus();
}

absl::Status GroupNorm(Stream stream, const GroupNormShape& shape, float epsilon, const float* x, const float* gain,
                       const float* bias, float* y, float* mean, float* inverse_deviation) {
  if (shape.batch == 0) return absl::OkStatus();
  RUBATO_CUDA_LAUNCH(GroupNormKernel, static_cast<unsigned>(shape.batch * shape.groups), kThreads, stream, shape,
                     epsilon, x, gain, bias, y, mean, inverse_deviation);
  return absl::OkStatus();
}

absl::Status GroupNormBackward(Work& work, const GroupNormShape& shape, const float* x, const float* gain,
                               const float* mean, const float* inverse_deviation, const float* dy, bool accumulate,
                               float* dx, float* dgain, float* dbias) {
  const int64_t planes = shape.batch * shape.channels;
  RUBATO_ASSIGN_OR_RETURN(double* direct, work.Scratch<double>(planes));
  RUBATO_ASSIGN_OR_RETURN(double* along, work.Scratch<double>(planes));
  if (planes > 0) {
    RUBATO_CUDA_LAUNCH(GroupNormPlaneSums, static_cast<unsigned>(planes), kThreads, work.stream(), shape, x, mean,
                       inverse_deviation, dy, direct, along);
  }
  RUBATO_RETURN_IF_ERROR(ColumnSums<2>(work, shape.batch, shape.channels, GroupNormTerms{shape.channels, direct, along},
                                       accumulate, SumTargets<2>{{dgain, dbias}}));
  if (dx == nullptr || planes == 0) return absl::OkStatus();
  RUBATO_CUDA_LAUNCH(GroupNormInputGradient, static_cast<unsigned>(shape.batch * shape.groups), kThreads, work.stream(),
                     shape, x, gain, mean, inverse_deviation, direct, along, dy, dx);
  return absl::OkStatus();
}

}  // namespace rubato::cuda
