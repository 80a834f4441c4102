#include "kernels/cuda/normalization.h"

#include "kernels/cuda/column_sums.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

// Those who work on a row together: a block of kThreads, or a warp of it, of which a block has kWarps.
template <bool kWarp>
struct RowThreads {
  static constexpr int kCount = kWarp ? kWarpThreads : kThreads;

  __device__ static int64_t Row() {
    return kWarp ? static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarpThreads : blockIdx.x;
  }
  __device__ static int Thread() { return static_cast<int>(threadIdx.x) % kCount; }
  __device__ static double Sum(double value, double* shared) {
    if constexpr (kWarp) return WarpSum(value);
    return BlockSum(value, shared);
  }
  static unsigned BlocksFor(int64_t rows) { return static_cast<unsigned>(kWarp ? (rows + kWarps - 1) / kWarps : rows); }
};

// Rows of at most so many elements get a warp.
constexpr int64_t kWarpRowElements = 2048;

// Over one channel's plane, of its gradient and of that times x_hat: [batch, channels].
struct PlaneSums {
  double *direct, *along;
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
__global__ void LayerNormKernel(LayerNormShape shape, NormForward a) {
  __shared__ double shared[kWarps];
  const int64_t row = RowThreads<kWarp>::Row(), columns = shape.columns;
  if (row >= shape.rows) return;
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
    a.mean[row] = s.mean;
    a.inverse_deviation[row] = s.inverse_deviation;
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
__global__ void LayerNormInputGradientKernel(LayerNormShape shape, NormBackward a, bool add_to_dx) {
  __shared__ double shared[kWarps];
  const int64_t row = RowThreads<kWarp>::Row(), columns = shape.columns;
  if (row >= shape.rows) return;
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
    StoreInputGradient<kPack>(values, gradient, gain, s, mean, slope, add_to_dx, dx + i);
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
__global__ void GroupNormKernel(GroupNormShape shape, NormForward a) {
  __shared__ double shared[kWarps];
  const int64_t at = RowThreads<kWarp>::Row();
  if (at >= shape.batch * shape.groups) return;
  const Group group(shape, at);
  const T* const x = static_cast<const T*>(a.x) + group.begin;
  T* const y = static_cast<T*>(a.y) + group.begin;
  const Statistics s = RowStatistics<kWarp, kPack>(x, group.elements, a.epsilon, shared);
  ForPacks<kWarp, kPack>(group.elements, [&](int64_t i) {
    const int64_t channel = group.first + i / shape.inner;
    const float gain = a.gain[channel], bias = a.bias[channel];
    float values[kPack];
    Load<kPack>(x + i, values);
    for (int j = 0; j < kPack; ++j) values[j] = gain * ((values[j] - s.mean) * s.inverse_deviation) + bias;
    Store<kPack>(values, y + i);
  });
  if (RowThreads<kWarp>::Thread() == 0) {
    a.mean[at] = s.mean;
    a.inverse_deviation[at] = s.inverse_deviation;
  }
}

template <typename T, bool kWarp, int kPack>
__global__ void GroupNormPlaneSumsKernel(GroupNormShape shape, NormBackward a, PlaneSums sums) {
  __shared__ double shared[kWarps];
  const int64_t plane = RowThreads<kWarp>::Row();
  if (plane >= shape.batch * shape.channels) return;
  const int64_t group = plane / (shape.channels / shape.groups);
  const Statistics s = {a.mean[group], a.inverse_deviation[group]};
  const T* const x = static_cast<const T*>(a.x) + plane * shape.inner;
  const T* const dy = static_cast<const T*>(a.dy) + plane * shape.inner;
  double direct = 0, along = 0;
  ForPacks<kWarp, kPack>(shape.inner, [&](int64_t i) {
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
    sums.direct[plane] = direct;
    sums.along[plane] = along;
  }
}

struct GroupNormTerms {
  int64_t channels;
  PlaneSums sums;
  __device__ Terms<2> operator()(int64_t row, int64_t channel) const {
    const int64_t at = row * channels + channel;
    return {{sums.along[at], sums.direct[at]}};
  }
};

// dx may be dy.
template <typename T, bool kWarp, int kPack>
__global__ void GroupNormInputGradientKernel(GroupNormShape shape, NormBackward a, PlaneSums sums) {
  __shared__ double shared[kWarps];
  const int64_t at = RowThreads<kWarp>::Row();
  if (at >= shape.batch * shape.groups) return;
  const Group group(shape, at);
  double plain = 0, times = 0;
  ForPacks<kWarp, 1>(group.channels, [&](int64_t c) {
    plain += sums.direct[at * group.channels + c] * a.gain[group.first + c];
    times += sums.along[at * group.channels + c] * a.gain[group.first + c];
  });
  const auto count = static_cast<double>(group.elements);
  const auto mean = static_cast<float>(RowThreads<kWarp>::Sum(plain, shared) / count);
  const auto slope = static_cast<float>(RowThreads<kWarp>::Sum(times, shared) / count);
  const Statistics s = {a.mean[at], a.inverse_deviation[at]};
  const T* const x = static_cast<const T*>(a.x) + group.begin;
  const T* const dy = static_cast<const T*>(a.dy) + group.begin;
  T* const dx = static_cast<T*>(a.dx) + group.begin;
  ForPacks<kWarp, kPack>(group.elements, [&](int64_t i) {
    const float channel_gain = a.gain[group.first + i / shape.inner];
    float values[kPack], gradient[kPack], gain[kPack];
    Load<kPack>(x + i, values);
    Load<kPack>(dy + i, gradient);
    for (int j = 0; j < kPack; ++j) gain[j] = channel_gain;
    StoreInputGradient<kPack>(values, gradient, gain, s, mean, slope, false, dx + i);
  });
}

// Rows of `elements`, of which `run` after each other are treated alike: in packs if these divide it.
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
absl::Status SumLayerNormTerms(Work& work, const LayerNormShape& shape, const NormBackward& a) {
  const LayerNormTerms<T> terms = {shape.columns, static_cast<const T*>(a.x), static_cast<const T*>(a.dy), a.mean,
                                   a.inverse_deviation};
  return ColumnSums<2>(work, shape.rows, shape.columns, terms, a.accumulate, SumTargets<2>{{a.dgain, a.dbias}});
}

absl::Status SumTerms(Work& work, const LayerNormShape& shape, const NormBackward& a) {
  RUBATO_CUDA_FOR_TYPE(shape.type, SumLayerNormTerms, work, shape, a);
}

}  // namespace

absl::Status LayerNorm(Stream stream, const LayerNormShape& shape, const NormForward& pass) {
  return ForRows(shape.type, RowsOf(shape), [&]<typename T, bool kWarp, int kPack>(unsigned blocks) -> absl::Status {
    RUBATO_CUDA_LAUNCH((LayerNormKernel<T, kWarp, kPack>), blocks, kThreads, stream, shape, pass);
    return absl::OkStatus();
  });
}

absl::Status LayerNormBackward(Work& work, const LayerNormShape& shape, const NormBackward& pass, bool add_to_dx) {
  // First, while dy is what it was.
  RUBATO_RETURN_IF_ERROR(SumTerms(work, shape, pass));
  if (pass.dx == nullptr) return absl::OkStatus();
  return ForRows(shape.type, RowsOf(shape), [&]<typename T, bool kWarp, int kPack>(unsigned blocks) -> absl::Status {
    RUBATO_CUDA_LAUNCH((LayerNormInputGradientKernel<T, kWarp, kPack>), blocks, kThreads, work.stream(), shape, pass,
                       add_to_dx);
    return absl::OkStatus();
  });
}

absl::Status GroupNorm(Stream stream, const GroupNormShape& shape, const NormForward& pass) {
  return ForRows(shape.type, GroupsOf(shape), [&]<typename T, bool kWarp, int kPack>(unsigned blocks) -> absl::Status {
    RUBATO_CUDA_LAUNCH((GroupNormKernel<T, kWarp, kPack>), blocks, kThreads, stream, shape, pass);
    return absl::OkStatus();
  });
}

absl::Status GroupNormBackward(Work& work, const GroupNormShape& shape, const NormBackward& pass) {
  PlaneSums sums = {};
  for (double** values : {&sums.direct, &sums.along}) {
    RUBATO_ASSIGN_OR_RETURN(*values, work.Scratch<double>(shape.batch * shape.channels));
  }
  RUBATO_RETURN_IF_ERROR(
      ForRows(shape.type, PlanesOf(shape), [&]<typename T, bool kWarp, int kPack>(unsigned blocks) -> absl::Status {
        RUBATO_CUDA_LAUNCH((GroupNormPlaneSumsKernel<T, kWarp, kPack>), blocks, kThreads, work.stream(), shape, pass,
                           sums);
        return absl::OkStatus();
      }));
  RUBATO_RETURN_IF_ERROR(ColumnSums<2>(work, shape.batch, shape.channels, GroupNormTerms{shape.channels, sums},
                                       pass.accumulate, SumTargets<2>{{pass.dgain, pass.dbias}}));
  if (pass.dx == nullptr) return absl::OkStatus();
  return ForRows(shape.type, GroupsOf(shape), [&]<typename T, bool kWarp, int kPack>(unsigned blocks) -> absl::Status {
    RUBATO_CUDA_LAUNCH((GroupNormInputGradientKernel<T, kWarp, kPack>), blocks, kThreads, work.stream(), shape, pass,
                       sums);
    return absl::OkStatus();
  });
}

}  // namespace rubato::cuda
