#include "kernels/cuda/normalization.h"

#include "kernels/cuda/column_sums.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

// What the kernels take; what a pass does not use is null.
struct LayerNormArguments {
  LayerNormShape shape;
  float epsilon = 0;
  const void *x = nullptr, *dy = nullptr;
  const float *gain = nullptr, *bias = nullptr;
  // Of the rows: written forward and read backward.
  float *mean_out = nullptr, *inverse_deviation_out = nullptr;
  const float *mean = nullptr, *inverse_deviation = nullptr;
  void *y = nullptr, *dx = nullptr;
  bool add_to_dx = false;
};

struct GroupNormArguments {
  GroupNormShape shape;
  float epsilon = 0;
  const void *x = nullptr, *dy = nullptr;
  const float *gain = nullptr, *bias = nullptr;
  float *mean_out = nullptr, *inverse_deviation_out = nullptr;
  const float *mean = nullptr, *inverse_deviation = nullptr;
  void *y = nullptr, *dx = nullptr;
  // Over one channel's plane, of its gradient and of that times x_hat: [batch, channels].
  double *direct_out = nullptr, *along_out = nullptr;
  const double *direct = nullptr, *along = nullptr;
};

// Calls use(i) for the first of every kPack elements of a row that are the thread's.
template <bool kWarp, int kPack, typename Use>
__device__ inline void ForPacks(int64_t n, const Use& use) {
  using Row = RowThreads<kWarp>;
  for (int64_t i = Row::Thread() * kPack; i < n; i += Row::kCount * kPack) use(i);
}

// Mean and 1 / sqrt(variance + epsilon) of a row, by those who work on it. The two-pass form does not cancel.
struct Statistics {
  float mean, inverse_deviation;
};

template <bool kWarp, int kPack, typename T>
__device__ Statistics RowStatistics(const T* x, int64_t n, float epsilon, double* shared) {
  double sum = 0;
  ForPacks<kWarp, kPack>(n, [&](int64_t i) {
    float values[kPack], part = 0;
    Load<kPack>(x + i, values);
    for (int j = 0; j < kPack; ++j) part += values[j];
    sum += part;
  });
  const auto mean = static_cast<float>(RowThreads<kWarp>::Sum(sum, shared) / static_cast<double>(n));
  double squares = 0;
  ForPacks<kWarp, kPack>(n, [&](int64_t i) {
    float values[kPack], part = 0;
    Load<kPack>(x + i, values);
    for (int j = 0; j < kPack; ++j) {
      const float distance = values[j] - mean;
      part += distance * distance;
    }
    squares += part;
  });
  const double variance = RowThreads<kWarp>::Sum(squares, shared) / static_cast<double>(n);
  return {mean, static_cast<float>(1 / sqrt(variance + epsilon))};
}

// dx = r * (dy * gain - a - x_hat * b), of one pack; or that is added to it.
template <int kPack, typename T>
__device__ inline void StoreInputGradient(const float (&x)[kPack], const float (&dy)[kPack], const float (&gain)[kPack],
                                          const Statistics& s, float a, float b, bool add, T* dx) {
  float result[kPack] = {};
  if (add) Load<kPack>(dx, result);
  for (int j = 0; j < kPack; ++j) {
    const float x_hat = (x[j] - s.mean) * s.inverse_deviation;
    result[j] += s.inverse_deviation * (dy[j] * gain[j] - a - x_hat * b);
  }
  Store<kPack>(result, dx);
}

template <typename T, bool kWarp, int kPack>
__global__ void LayerNormKernel(LayerNormArguments a) {
  __shared__ double shared[kWarps];
  const int64_t row = RowThreads<kWarp>::Row(), columns = a.shape.columns;
  if (row >= a.shape.rows) return;
  const T* const x = static_cast<const T*>(a.x) + row * columns;
  T* const y = static_cast<T*>(a.y) + row * columns;
  const Statistics s = RowStatistics<kWarp, kPack>(x, columns, a.epsilon, shared);
  ForPacks<kWarp, kPack>(columns, [&](int64_t i) {
    float values[kPack], gain[kPack], bias[kPack];
    Load<kPack>(x + i, values);
    Load<kPack>(a.gain + i, gain);
    Load<kPack>(a.bias + i, bias);
    for (int j = 0; j < kPack; ++j) values[j] = gain[j] * ((values[j] - s.mean) * s.inverse_deviation) + bias[j];
    Store<kPack>(values, y + i);
  });
  if (RowThreads<kWarp>::Thread() == 0) {
    a.mean_out[row] = s.mean;
    a.inverse_deviation_out[row] = s.inverse_deviation;
  }
}

template <typename T>
struct LayerNormTerms {
  int64_t columns;
  const T *x, *dy;
  const float *mean, *inverse_deviation;
  __device__ Terms<2> operator()(int64_t row, int64_t column) const {
    const int64_t at = row * columns + column;
    const float gradient = ToFloat(dy[at]);
    const float x_hat = (ToFloat(x[at]) - mean[row]) * inverse_deviation[row];
    return {{gradient * x_hat, gradient}};
  }
};

// dx may be dy: an element is read and written by one thread.
template <typename T, bool kWarp, int kPack>
__global__ void LayerNormInputGradientKernel(LayerNormArguments a) {
  __shared__ double shared[kWarps];
  const int64_t row = RowThreads<kWarp>::Row(), columns = a.shape.columns;
  if (row >= a.shape.rows) return;
  const T* const x = static_cast<const T*>(a.x) + row * columns;
  const T* const dy = static_cast<const T*>(a.dy) + row * columns;
  T* const dx = static_cast<T*>(a.dx) + row * columns;
  const Statistics s = {a.mean[row], a.inverse_deviation[row]};
  double direct = 0, along = 0;
  ForPacks<kWarp, kPack>(columns, [&](int64_t i) {
    float values[kPack], gradient[kPack], gain[kPack], plain = 0, times = 0;
    Load<kPack>(x + i, values);
    Load<kPack>(dy + i, gradient);
    Load<kPack>(a.gain + i, gain);
    for (int j = 0; j < kPack; ++j) {
      const float g = gradient[j] * gain[j];
      plain += g;
      times += g * ((values[j] - s.mean) * s.inverse_deviation);
    }
    direct += plain;
    along += times;
  });
  const auto mean = static_cast<float>(RowThreads<kWarp>::Sum(direct, shared) / static_cast<double>(columns));
  const auto slope = static_cast<float>(RowThreads<kWarp>::Sum(along, shared) / static_cast<double>(columns));
  ForPacks<kWarp, kPack>(columns, [&](int64_t i) {
    float values[kPack], gradient[kPack], gain[kPack];
    Load<kPack>(x + i, values);
    Load<kPack>(dy + i, gradient);
    Load<kPack>(a.gain + i, gain);
    StoreInputGradient<kPack>(values, gradient, gain, s, mean, slope, a.add_to_dx, dx + i);
  });
}

// A group of an example is a row, of `elements` in some channels from `first` on; a pack lies in one channel.
struct Group {
  __device__ Group(const GroupNormShape& shape, int64_t at)
      : channels(shape.channels / shape.groups),
        elements(channels * shape.inner),
        first(at % shape.groups * channels),
        begin(at * elements) {}
  const int64_t channels, elements, first, begin;
};

template <typename T, bool kWarp, int kPack>
__global__ void GroupNormKernel(GroupNormArguments a) {
  __shared__ double shared[kWarps];
  const int64_t at = RowThreads<kWarp>::Row();
  if (at >= a.shape.batch * a.shape.groups) return;
  const Group group(a.shape, at);
  const T* const x = static_cast<const T*>(a.x) + group.begin;
  T* const y = static_cast<T*>(a.y) + group.begin;
  const Statistics s = RowStatistics<kWarp, kPack>(x, group.elements, a.epsilon, shared);
  ForPacks<kWarp, kPack>(group.elements, [&](int64_t i) {
    const int64_t channel = group.first + i / a.shape.inner;
    const float gain = a.gain[channel], bias = a.bias[channel];
    float values[kPack];
    Load<kPack>(x + i, values);
    for (int j = 0; j < kPack; ++j) values[j] = gain * ((values[j] - s.mean) * s.inverse_deviation) + bias;
    Store<kPack>(values, y + i);
  });
  if (RowThreads<kWarp>::Thread() == 0) {
    a.mean_out[at] = s.mean;
    a.inverse_deviation_out[at] = s.inverse_deviation;
  }
}

template <typename T, bool kWarp, int kPack>
__global__ void GroupNormPlaneSumsKernel(GroupNormArguments a) {
  __shared__ double shared[kWarps];
  const int64_t plane = RowThreads<kWarp>::Row();
  if (plane >= a.shape.batch * a.shape.channels) return;
  const int64_t group = plane / (a.shape.channels / a.shape.groups);
  const Statistics s = {a.mean[group], a.inverse_deviation[group]};
  const T* const x = static_cast<const T*>(a.x) + plane * a.shape.inner;
  const T* const dy = static_cast<const T*>(a.dy) + plane * a.shape.inner;
  double direct = 0, along = 0;
  ForPacks<kWarp, kPack>(a.shape.inner, [&](int64_t i) {
    float values[kPack], gradient[kPack], plain = 0, times = 0;
    Load<kPack>(x + i, values);
    Load<kPack>(dy + i, gradient);
    for (int j = 0; j < kPack; ++j) {
      plain += gradient[j];
      times += gradient[j] * ((values[j] - s.mean) * s.inverse_deviation);
    }
    direct += plain;
    along += times;
  });
  direct = RowThreads<kWarp>::Sum(direct, shared);
  along = RowThreads<kWarp>::Sum(along, shared);
  if (RowThreads<kWarp>::Thread() == 0) {
    a.direct_out[plane] = direct;
    a.along_out[plane] = along;
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

// dx may be dy.
template <typename T, bool kWarp, int kPack>
__global__ void GroupNormInputGradientKernel(GroupNormArguments a) {
  __shared__ double shared[kWarps];
  const int64_t at = RowThreads<kWarp>::Row();
  if (at >= a.shape.batch * a.shape.groups) return;
  const Group group(a.shape, at);
  double plain = 0, times = 0;
  ForPacks<kWarp, 1>(group.channels, [&](int64_t c) {
    plain += a.direct[at * group.channels + c] * a.gain[group.first + c];
    times += a.along[at * group.channels + c] * a.gain[group.first + c];
  });
  const auto count = static_cast<double>(group.elements);
  const auto mean = static_cast<float>(RowThreads<kWarp>::Sum(plain, shared) / count);
  const auto slope = static_cast<float>(RowThreads<kWarp>::Sum(times, shared) / count);
  const Statistics s = {a.mean[at], a.inverse_deviation[at]};
  const T* const x = static_cast<const T*>(a.x) + group.begin;
  const T* const dy = static_cast<const T*>(a.dy) + group.begin;
  T* const dx = static_cast<T*>(a.dx) + group.begin;
  ForPacks<kWarp, kPack>(group.elements, [&](int64_t i) {
    const float channel_gain = a.gain[group.first + i / a.shape.inner];
    float values[kPack], gradient[kPack], gain[kPack];
    Load<kPack>(x + i, values);
    Load<kPack>(dy + i, gradient);
    for (int j = 0; j < kPack; ++j) gain[j] = channel_gain;
    StoreInputGradient<kPack>(values, gradient, gain, s, mean, slope, false, dx + i);
  });
}

// Rows of `elements`, of which `run` after each other are treated alike: in packs where these divide it.
struct Rows {
  int64_t count = 0, elements = 0, run = 0;
};

// launch<T, kWarp, kPack>(blocks): with warps for short rows.
template <typename T, int kPack, typename Launch>
absl::Status ForThreads(const Rows& rows, const Launch& launch) {
  return rows.elements <= kWarpRowElements
             ? launch.template operator()<T, true, kPack>(RowThreads<true>::BlocksFor(rows.count))
             : launch.template operator()<T, false, kPack>(RowThreads<false>::BlocksFor(rows.count));
}

template <typename T, typename Launch>
absl::Status ForPacksOf(const Rows& rows, const Launch& launch) {
  if (rows.count == 0) return absl::OkStatus();
  constexpr int kPack = kPackElements<T>;
  return rows.run % kPack == 0 ? ForThreads<T, kPack>(rows, launch) : ForThreads<T, 1>(rows, launch);
}

template <typename Launch>
absl::Status ForRows(ElementType type, const Rows& rows, const Launch& launch) {
  RUBATO_CUDA_FOR_TYPE(type, ForPacksOf, rows, launch);
}

Rows RowsOf(const LayerNormShape& shape) { return {shape.rows, shape.columns, shape.columns}; }
Rows GroupsOf(const GroupNormShape& shape) {
  return {shape.batch * shape.groups, shape.channels / shape.groups * shape.inner, shape.inner};
}
Rows PlanesOf(const GroupNormShape& shape) { return {shape.batch * shape.channels, shape.inner, shape.inner}; }

template <typename T>
absl::Status SumLayerNormTerms(Work& work, const LayerNormArguments& a, bool accumulate, const SumTargets<2>& to) {
  const LayerNormTerms<T> terms = {a.shape.columns, static_cast<const T*>(a.x), static_cast<const T*>(a.dy), a.mean,
                                   a.inverse_deviation};
  return ColumnSums<2>(work, a.shape.rows, a.shape.columns, terms, accumulate, to);
}

absl::Status SumTerms(Work& work, const LayerNormArguments& a, bool accumulate, const SumTargets<2>& to) {
  RUBATO_CUDA_FOR_TYPE(a.shape.type, SumLayerNormTerms, work, a, accumulate, to);
}

}  // namespace

absl::Status LayerNorm(Stream stream, const LayerNormShape& shape, float epsilon, const void* x, const float* gain,
                       const float* bias, void* y, float* mean, float* inverse_deviation) {
  const LayerNormArguments a = {.shape = shape,
                                .epsilon = epsilon,
                                .x = x,
                                .gain = gain,
                                .bias = bias,
                                .mean_out = mean,
                                .inverse_deviation_out = inverse_deviation,
                                .y = y};
  return ForRows(shape.type, RowsOf(shape), [&]<typename T, bool kWarp, int kPack>(unsigned blocks) -> absl::Status {
    RUBATO_CUDA_LAUNCH((LayerNormKernel<T, kWarp, kPack>), blocks, kThreads, stream, a);
    return absl::OkStatus();
  });
}

absl::Status LayerNormBackward(Work& work, const LayerNormShape& shape, const void* x, const float* gain,
                               const float* mean, const float* inverse_deviation, const void* dy, bool accumulate,
                               bool add_to_dx, void* dx, float* dgain, float* dbias) {
  const LayerNormArguments a = {.shape = shape,
                                .x = x,
                                .dy = dy,
                                .gain = gain,
                                .mean = mean,
                                .inverse_deviation = inverse_deviation,
                                .dx = dx,
                                .add_to_dx = add_to_dx};
  // First, while dy is what it was.
  RUBATO_RETURN_IF_ERROR(SumTerms(work, a, accumulate, {{dgain, dbias}}));
  if (dx == nullptr) return absl::OkStatus();
  return ForRows(shape.type, RowsOf(shape), [&]<typename T, bool kWarp, int kPack>(unsigned blocks) -> absl::Status {
    RUBATO_CUDA_LAUNCH((LayerNormInputGradientKernel<T, kWarp, kPack>), blocks, kThreads, work.stream(), a);
    return absl::OkStatus();
  });
}

absl::Status GroupNorm(Stream stream, const GroupNormShape& shape, float epsilon, const void* x, const float* gain,
                       const float* bias, void* y, float* mean, float* inverse_deviation) {
  const GroupNormArguments a = {.shape = shape,
                                .epsilon = epsilon,
                                .x = x,
                                .gain = gain,
                                .bias = bias,
                                .mean_out = mean,
                                .inverse_deviation_out = inverse_deviation,
                                .y = y};
  return ForRows(shape.type, GroupsOf(shape), [&]<typename T, bool kWarp, int kPack>(unsigned blocks) -> absl::Status {
    RUBATO_CUDA_LAUNCH((GroupNormKernel<T, kWarp, kPack>), blocks, kThreads, stream, a);
    return absl::OkStatus();
  });
}

absl::Status GroupNormBackward(Work& work, const GroupNormShape& shape, const void* x, const float* gain,
                               const float* mean, const float* inverse_deviation, const void* dy, bool accumulate,
                               void* dx, float* dgain, float* dbias) {
  const int64_t planes = shape.batch * shape.channels;
  RUBATO_ASSIGN_OR_RETURN(double* direct, work.Scratch<double>(planes));
  RUBATO_ASSIGN_OR_RETURN(double* along, work.Scratch<double>(planes));
  const GroupNormArguments a = {.shape = shape,
                                .x = x,
                                .dy = dy,
                                .gain = gain,
                                .mean = mean,
                                .inverse_deviation = inverse_deviation,
                                .dx = dx,
                                .direct_out = direct,
                                .along_out = along,
                                .direct = direct,
                                .along = along};
  RUBATO_RETURN_IF_ERROR(
      ForRows(shape.type, PlanesOf(shape), [&]<typename T, bool kWarp, int kPack>(unsigned blocks) -> absl::Status {
        RUBATO_CUDA_LAUNCH((GroupNormPlaneSumsKernel<T, kWarp, kPack>), blocks, kThreads, work.stream(), a);
        return absl::OkStatus();
      }));
  RUBATO_RETURN_IF_ERROR(ColumnSums<2>(work, shape.batch, shape.channels, GroupNormTerms{shape.channels, direct, along},
                                       accumulate, SumTargets<2>{{dgain, dbias}}));
  if (dx == nullptr) return absl::OkStatus();
  return ForRows(shape.type, GroupsOf(shape), [&]<typename T, bool kWarp, int kPack>(unsigned blocks) -> absl::Status {
    RUBATO_CUDA_LAUNCH((GroupNormInputGradientKernel<T, kWarp, kPack>), blocks, kThreads, work.stream(), a);
    return absl::OkStatus();
  });
}

}  // namespace rubato::cuda
