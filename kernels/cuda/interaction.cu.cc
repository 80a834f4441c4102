#include "kernels/cuda/interaction.h"

#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

// How many pairs i > j come before those of vector i.
__device__ inline int64_t PairsBefore(int64_t i) { return i * (i - 1) / 2; }

// The i of a pair.
__device__ inline int64_t VectorOfPair(int64_t pair) {
  auto i = static_cast<int64_t>((1 + sqrt(1 + 8 * static_cast<double>(pair))) / 2);
  while (PairsBefore(i) > pair) --i;
  while (PairsBefore(i + 1) <= pair) ++i;
  return i;
}

// An output for each thread.
template <typename T>
__global__ void DotInteractionKernel(int64_t rows, int64_t vectors, int64_t width, const T* x, T* y) {
  const int64_t outputs = width + PairsBefore(vectors);
  for (int64_t at = First(); at < rows * outputs; at += Stride()) {
    const T* row = x + at / outputs * vectors * width;
    const int64_t output = at % outputs;
    if (output < width) {
      y[at] = row[output];
      continue;
    }
    const int64_t pair = output - width, i = VectorOfPair(pair), j = pair - PairsBefore(i);
    float sum = 0;
    for (int64_t k = 0; k < width; ++k) sum += ToFloat(row[i * width + k]) * ToFloat(row[j * width + k]);
    y[at] = ConvertTo<T>(sum);
  }
}

// An element of dx for each thread.
template <typename T>
__global__ void DotInteractionBackwardKernel(int64_t rows, int64_t vectors, int64_t width, const T* x, const T* dy,
                                             T* dx) {
  const int64_t inputs = vectors * width, outputs = width + PairsBefore(vectors);
  for (int64_t at = First(); at < rows * inputs; at += Stride()) {
    const int64_t row = at / inputs, i = at % inputs / width, k = at % width;
    const T* const dfirst = dy + row * outputs;
    const T* const ddots = dfirst + width;
    const T* const column = x + row * inputs + k;
    float sum = i == 0 ? ToFloat(dfirst[k]) : 0;
    for (int64_t j = 0; j < i; ++j) sum += ToFloat(ddots[PairsBefore(i) + j]) * ToFloat(column[j * width]);
    for (int64_t j = i + 1; j < vectors; ++j) sum += ToFloat(ddots[PairsBefore(j) + i]) * ToFloat(column[j * width]);
    dx[at] = ConvertTo<T>(sum);
  }
}

// A row for each warp. Each vector meets the sum of those before it: nothing cancels, as it would in half of |sum|^2 -
// sum of |x|^2.
template <typename T>
__global__ void FactorizationMachineKernel(int64_t rows, int64_t vectors, int64_t width, const T* x, T* y) {
  const int64_t lane = threadIdx.x % kWarpThreads;
  for (int64_t row = First() / kWarpThreads; row < rows; row += Stride() / kWarpThreads) {
    double products = 0;
    for (int64_t k = lane; k < width; k += kWarpThreads) {
      float before = 0, product = 0;
      for (int64_t i = 0; i < vectors; ++i) {
        const float element = ToFloat(x[(row * vectors + i) * width + k]);
        product += before * element;
        before += element;
      }
      products += product;
    }
    products = WarpSum(products);
    if (lane == 0) y[row] = ConvertTo<T>(static_cast<float>(products));
  }
}

// An element of all vectors of a row for each thread.
template <typename T>
__global__ void FactorizationMachineBackwardKernel(int64_t rows, int64_t vectors, int64_t width, const T* x,
                                                   const T* dy, T* dx) {
  for (int64_t at = First(); at < rows * width; at += Stride()) {
    const int64_t row = at / width, first = row * vectors * width + at % width;
    float sum = 0;
    for (int64_t i = 0; i < vectors; ++i) sum += ToFloat(x[first + i * width]);
    const float factor = ToFloat(dy[row]);
    for (int64_t i = 0; i < vectors; ++i) {
      dx[first + i * width] = ConvertTo<T>(factor * (sum - ToFloat(x[first + i * width])));
    }
  }
}

template <typename T>
absl::Status LaunchDots(Stream stream, const InteractionShape& shape, const void* x, void* y) {
  const int64_t outputs = shape.width + shape.vectors * (shape.vectors - 1) / 2;
  RUBATO_CUDA_LAUNCH(DotInteractionKernel<T>, Blocks(shape.rows * outputs), kThreads, stream, shape.rows, shape.vectors,
                     shape.width, static_cast<const T*>(x), static_cast<T*>(y));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchDotsBackward(Stream stream, const InteractionShape& shape, const void* x, const void* dy, void* dx) {
  RUBATO_CUDA_LAUNCH(DotInteractionBackwardKernel<T>, Blocks(shape.rows * shape.vectors * shape.width), kThreads,
                     stream, shape.rows, shape.vectors, shape.width, static_cast<const T*>(x),
                     static_cast<const T*>(dy), static_cast<T*>(dx));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchMachine(Stream stream, const InteractionShape& shape, const void* x, void* y) {
  RUBATO_CUDA_LAUNCH(FactorizationMachineKernel<T>, Blocks(shape.rows * kWarpThreads), kThreads, stream, shape.rows,
                     shape.vectors, shape.width, static_cast<const T*>(x), static_cast<T*>(y));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchMachineBackward(Stream stream, const InteractionShape& shape, const void* x, const void* dy,
                                   void* dx) {
  RUBATO_CUDA_LAUNCH(FactorizationMachineBackwardKernel<T>, Blocks(shape.rows * shape.width), kThreads, stream,
                     shape.rows, shape.vectors, shape.width, static_cast<const T*>(x), static_cast<const T*>(dy),
                     static_cast<T*>(dx));
  return absl::OkStatus();
}

}  // namespace

absl::Status DotInteraction(Stream stream, const InteractionShape& shape, const void* x, void* y) {
  RUBATO_CUDA_FOR_TYPE(shape.type, LaunchDots, stream, shape, x, y);
}

absl::Status DotInteractionBackward(Stream stream, const InteractionShape& shape, const void* x, const void* dy,
                                    void* dx) {
  RUBATO_CUDA_FOR_TYPE(shape.type, LaunchDotsBackward, stream, shape, x, dy, dx);
}

absl::Status FactorizationMachine(Stream stream, const InteractionShape& shape, const void* x, void* y) {
  RUBATO_CUDA_FOR_TYPE(shape.type, LaunchMachine, stream, shape, x, y);
}

absl::Status FactorizationMachineBackward(Stream stream, const InteractionShape& shape, const void* x, const void* dy,
                                          void* dx) {
  RUBATO_CUDA_FOR_TYPE(shape.type, LaunchMachineBackward, stream, shape, x, dy, dx);
}

}  // namespace rubato::cuda
