#include "kernels/cuda/elementwise.h"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/philox.h"

namespace rubato::cuda {
namespace {

// What a function of an element's place takes from there.
template <typename T, int kInputs>
struct Sources {
  const T* values[kInputs];
};

template <int kCount, typename T, int kInputs, typename Function>
__device__ inline void MapPack(const Sources<T, kInputs>& from, int64_t at, const Function& function, T* to) {
  float x[kInputs][kCount], y[kCount];
#pragma unroll
  for (int k = 0; k < kInputs; ++k) Load<kCount>(from.values[k] + at, x[k]);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    float inputs[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) inputs[k] = x[k][i];
    y[i] = function(inputs);
  }
  Store<kCount>(y, to + at);
}

// to[i] = function(from[0][i], ...). `to` may be one of the sources.
template <typename T, int kInputs, typename Function>
__global__ void MapKernel(Sources<T, kInputs> from, int64_t n, Function function, T* to) {
  constexpr int kPack = kPackElements<T>;
  const int64_t packed = n / kPack * kPack;
  for (int64_t i = First() * kPack; i < packed; i += Stride() * kPack) MapPack<kPack>(from, i, function, to);
  for (int64_t i = packed + First(); i < n; i += Stride()) MapPack<1>(from, i, function, to);
}

template <typename T, int kInputs, typename Function>
absl::Status Map(Stream stream, const Sources<T, kInputs>& from, int64_t n, const Function& function, T* to) {
  RUBATO_CUDA_LAUNCH((MapKernel<T, kInputs, Function>), Blocks(n / kPackElements<T>), kThreads, stream, from, n,
                     function, to);
  return absl::OkStatus();
}

template <typename T>
const T* In(const void* data) {
  return static_cast<const T*>(data);
}
template <typename T>
T* Out(void* data) {
  return static_cast<T*>(data);
}

struct SumOfTwo {
  __device__ float operator()(const float (&x)[2]) const { return x[0] + x[1]; }
};
struct ProductOfTwo {
  __device__ float operator()(const float (&x)[2]) const { return x[0] * x[1]; }
};
struct AddProductOfTwo {
  __device__ float operator()(const float (&x)[3]) const { return x[2] + x[0] * x[1]; }
};
struct AddScaled {
  float alpha;
  __device__ float operator()(const float (&x)[2]) const { return x[1] + alpha * x[0]; }
};
struct Times {
  float alpha;
  __device__ float operator()(const float (&x)[1]) const { return x[0] * alpha; }
};

// The standard normal distribution's cumulative function. erfc keeps its precision where it is small.
__device__ inline float NormalCdf(float x) { return 0.5f * erfcf(-x * 0.707106781186547524f); }

template <Activation kActivation>
struct ActivationValue {
  __device__ float operator()(const float (&inputs)[1]) const {
    const float x = inputs[0];
    if constexpr (kActivation == Activation::kRelu) return x < 0 ? 0 : x;
    if constexpr (kActivation == Activation::kTanh) return tanhf(x);
    if constexpr (kActivation == Activation::kGelu) return x * NormalCdf(x);
  }
};

// Of x, or of y if that is enough, and of dy.
template <Activation kActivation>
struct ActivationGradient {
  __device__ float operator()(const float (&inputs)[2]) const {
    const float dy = inputs[1];
    if constexpr (kActivation == Activation::kRelu) return inputs[0] <= 0 ? 0 : dy;
    if constexpr (kActivation == Activation::kTanh) return dy * (1 - inputs[0] * inputs[0]);
    if constexpr (kActivation == Activation::kGelu) {
      constexpr float kDensityAtZero = 0.398942280401432678f;  // 1 / sqrt(2 pi)
      const float x = inputs[0];
      return dy * (NormalCdf(x) + x * kDensityAtZero * expf(-0.5f * x * x));
    }
  }
};

template <typename T>
__global__ void FillKernel(float value, int64_t n, T* y) {
  for (int64_t i = First(); i < n; i += Stride()) y[i] = ConvertTo<T>(value);
}

// Rows of a block's y coordinate; y [rows, columns], columns = channels * inner.
template <typename T>
__global__ void AddBiasKernel(const float* bias, int64_t rows, int64_t columns, int64_t inner, T* y) {
  for (int64_t column = First(); column < columns; column += Stride()) {
    const float added = bias[inner == 1 ? column : column / inner];
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
      T& element = y[row * columns + column];
      element = ConvertTo<T>(ToFloat(element) + added);
    }
  }
}

template <typename T>
__global__ void CopyColumnsKernel(ColumnRange range, bool accumulate, int64_t rows, const T* x, int64_t x_columns, T* y,
                                  int64_t y_columns) {
  for (int64_t i = First(); i < rows * range.count; i += Stride()) {
    const int64_t row = i / range.count, column = i % range.count;
    const T from = x[row * x_columns + range.from + column];
    T& to = y[row * y_columns + range.to + column];
    to = accumulate ? ConvertTo<T>(ToFloat(to) + ToFloat(from)) : from;
  }
}

// One block of four random words for each thread.
template <typename T>
__global__ void DropoutKernel(uint64_t seed, uint64_t stream, uint64_t threshold, float scale, const T* x, int64_t n,
                              T* y) {
  for (int64_t block = First(); block * 4 < n; block += Stride()) {
    const uint4 block_words = Philox(seed, stream, block);
    const uint32_t words[4] = {block_words.x, block_words.y, block_words.z, block_words.w};
    const int64_t first = block * 4;
    if (first + 4 <= n) {
      float elements[4];
      Load<4>(x + first, elements);
      for (int i = 0; i < 4; ++i) elements[i] = words[i] >= threshold ? elements[i] * scale : 0.0f;
      Store<4>(elements, y + first);
      continue;
    }
    for (int i = 0; first + i < n; ++i) {
      y[first + i] = ConvertTo<T>(words[i] >= threshold ? ToFloat(x[first + i]) * scale : 0.0f);
    }
  }
}

template <typename T>
absl::Status LaunchFill(Stream stream, float value, int64_t n, void* y) {
  RUBATO_CUDA_LAUNCH(FillKernel<T>, Blocks(n), kThreads, stream, value, n, Out<T>(y));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchAdd(Stream stream, const void* a, const void* b, int64_t n, void* y) {
  return Map(stream, Sources<T, 2>{{In<T>(a), In<T>(b)}}, n, SumOfTwo{}, Out<T>(y));
}

template <typename T>
absl::Status LaunchMultiply(Stream stream, const void* a, const void* b, int64_t n, bool accumulate, void* y) {
  if (!accumulate) return Map(stream, Sources<T, 2>{{In<T>(a), In<T>(b)}}, n, ProductOfTwo{}, Out<T>(y));
  return Map(stream, Sources<T, 3>{{In<T>(a), In<T>(b), In<T>(y)}}, n, AddProductOfTwo{}, Out<T>(y));
}

template <typename T>
absl::Status LaunchCopyColumns(Stream stream, const ColumnRange& range, bool accumulate, int64_t rows, const void* x,
                               int64_t x_columns, void* y, int64_t y_columns) {
  RUBATO_CUDA_LAUNCH(CopyColumnsKernel<T>, Blocks(rows * range.count), kThreads, stream, range, accumulate, rows,
                     In<T>(x), x_columns, Out<T>(y), y_columns);
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchAxpy(Stream stream, float alpha, const void* x, int64_t n, void* y) {
  return Map(stream, Sources<T, 2>{{In<T>(x), In<T>(y)}}, n, AddScaled{alpha}, Out<T>(y));
}

template <typename T>
absl::Status LaunchScale(Stream stream, float alpha, int64_t n, void* y) {
  return Map(stream, Sources<T, 1>{{In<T>(y)}}, n, Times{alpha}, Out<T>(y));
}

template <typename T>
absl::Status LaunchAddBias(Stream stream, const float* bias, int64_t rows, int64_t channels, int64_t inner, void* y) {
  const int64_t columns = channels * inner;
  const dim3 blocks(Blocks(columns), static_cast<unsigned>(std::min<int64_t>(rows, 256)));
  RUBATO_CUDA_LAUNCH(AddBiasKernel<T>, blocks, kThreads, stream, bias, rows, columns, inner, Out<T>(y));
  return absl::OkStatus();
}

template <typename T, Activation kActivation>
absl::Status LaunchActivation(Stream stream, const void* x, int64_t n, void* y) {
  return Map(stream, Sources<T, 1>{{In<T>(x)}}, n, ActivationValue<kActivation>{}, Out<T>(y));
}

template <typename T>
absl::Status LaunchActivate(Stream stream, Activation activation, const void* x, int64_t n, void* y) {
  switch (activation) {
    case Activation::kRelu:
      return LaunchActivation<T, Activation::kRelu>(stream, x, n, y);
    case Activation::kTanh:
      return LaunchActivation<T, Activation::kTanh>(stream, x, n, y);
    case Activation::kGelu:
      return LaunchActivation<T, Activation::kGelu>(stream, x, n, y);
  }
  return absl::InternalError("no kernel for this activation");
}

template <typename T, Activation kActivation>
absl::Status LaunchGradient(Stream stream, const void* of, const void* dy, int64_t n, void* dx) {
  return Map(stream, Sources<T, 2>{{In<T>(of), In<T>(dy)}}, n, ActivationGradient<kActivation>{}, Out<T>(dx));
}

template <typename T>
absl::Status LaunchActivateBackward(Stream stream, Activation activation, const void* x, const void* y, const void* dy,
                                    int64_t n, void* dx) {
  switch (activation) {
    case Activation::kRelu:
      return LaunchGradient<T, Activation::kRelu>(stream, y, dy, n, dx);
    case Activation::kTanh:
      return LaunchGradient<T, Activation::kTanh>(stream, y, dy, n, dx);
    case Activation::kGelu:
      return LaunchGradient<T, Activation::kGelu>(stream, x, dy, n, dx);
  }
  return absl::InternalError("no kernel for this activation's gradient");
}

template <typename T>
absl::Status LaunchDropout(Stream stream, const DropoutMask& mask, const void* x, int64_t n, void* y) {
  const auto threshold = static_cast<uint64_t>(std::ceil(mask.rate * 0x1p32));
  const auto scale = static_cast<float>(1 / (1 - mask.rate));
  RUBATO_CUDA_LAUNCH(DropoutKernel<T>, Blocks((n + 3) / 4), kThreads, stream, mask.seed, mask.stream, threshold, scale,
                     In<T>(x), n, Out<T>(y));
  return absl::OkStatus();
}

}  // namespace

absl::Status Fill(Stream stream, ElementType type, float value, int64_t n, void* y) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchFill, stream, value, n, y);
}

absl::Status Add(Stream stream, ElementType type, const void* a, const void* b, int64_t n, void* y) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchAdd, stream, a, b, n, y);
}

absl::Status Multiply(Stream stream, ElementType type, const void* a, const void* b, int64_t n, bool accumulate,
                      void* y) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchMultiply, stream, a, b, n, accumulate, y);
}

absl::Status CopyColumns(Stream stream, ElementType type, const ColumnRange& range, bool accumulate, int64_t rows,
                         const void* x, int64_t x_columns, void* y, int64_t y_columns) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchCopyColumns, stream, range, accumulate, rows, x, x_columns, y, y_columns);
}

absl::Status Axpy(Stream stream, ElementType type, float alpha, const void* x, int64_t n, void* y) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchAxpy, stream, alpha, x, n, y);
}

absl::Status Scale(Stream stream, ElementType type, float alpha, int64_t n, void* y) {
  if (alpha == 0) return Fill(stream, type, 0, n, y);
  RUBATO_CUDA_FOR_TYPE(type, LaunchScale, stream, alpha, n, y);
}

absl::Status AddBias(Stream stream, ElementType type, const float* bias, int64_t rows, int64_t channels, int64_t inner,
                     void* y) {
  if (rows * channels * inner == 0) return absl::OkStatus();
  RUBATO_CUDA_FOR_TYPE(type, LaunchAddBias, stream, bias, rows, channels, inner, y);
}

absl::Status Activate(Stream stream, ElementType type, Activation activation, const void* x, int64_t n, void* y) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchActivate, stream, activation, x, n, y);
}

absl::Status ActivateBackward(Stream stream, ElementType type, Activation activation, const void* x, const void* y,
                              const void* dy, int64_t n, void* dx) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchActivateBackward, stream, activation, x, y, dy, n, dx);
}

absl::Status Dropout(Stream stream, ElementType type, const DropoutMask& mask, const void* x, int64_t n, void* y) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchDropout, stream, mask, x, n, y);
}

}  // namespace rubato::cuda
