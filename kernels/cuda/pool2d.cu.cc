#include "kernels/cuda/pool2d.h"

#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

// The geometry in the form that kernels use.
struct Pooling {
  explicit Pooling(const Pool2dGeometry& g, int64_t batch)
      : planes(batch * g.channels),
        height(g.height),
        width(g.width),
        window(g.window),
        stride(g.stride),
        out_height(g.output_height()),
        out_width(g.output_width()) {}

  int64_t planes, height, width, window, stride, out_height, out_width;
  __host__ __device__ int64_t inputs() const { return planes * height * width; }
  __host__ __device__ int64_t outputs() const { return planes * out_height * out_width; }
};

// The upper left corner of an output's window, as a place in its plane, and the plane.
struct Window {
  int64_t plane, corner;
};

__device__ inline Window WindowOf(const Pooling& p, int64_t output) {
  const int64_t ow = output % p.out_width, oh = output / p.out_width % p.out_height;
  return {output / (p.out_width * p.out_height), oh * p.stride * p.width + ow * p.stride};
}

template <typename T>
__global__ void MaxPool2dKernel(Pooling p, const T* x, T* y, int32_t* argmax) {
  for (int64_t output = First(); output < p.outputs(); output += Stride()) {
    const Window window = WindowOf(p, output);
    const T* plane = x + window.plane * p.height * p.width;
    int64_t best_at = window.corner;
    float best = ToFloat(plane[best_at]);
    for (int64_t i = 0; i < p.window; ++i) {
      for (int64_t j = 0; j < p.window; ++j) {
        const int64_t at = window.corner + i * p.width + j;
        const float element = ToFloat(plane[at]);
        // A NaN is taken, and nothing is larger than it.
        if (element > best || isnan(element)) {
          best = element;
          best_at = at;
        }
      }
    }
    y[output] = plane[best_at];
    argmax[output] = static_cast<int32_t>(best_at);
  }
}

// Calls visit(output) for each output whose window has the input, in order.
template <typename Visit>
__device__ inline void ForEachWindow(const Pooling& p, int64_t input, const Visit& visit) {
  const int64_t w = input % p.width, h = input / p.width % p.height, plane = input / (p.width * p.height);
  // The first window that reaches so far, and the last one that begins here.
  const int64_t first_h = h < p.window ? 0 : (h - p.window) / p.stride + 1;
  const int64_t first_w = w < p.window ? 0 : (w - p.window) / p.stride + 1;
  const int64_t last_h = h / p.stride < p.out_height ? h / p.stride : p.out_height - 1;
  const int64_t last_w = w / p.stride < p.out_width ? w / p.stride : p.out_width - 1;
  for (int64_t oh = first_h; oh <= last_h; ++oh) {
    for (int64_t ow = first_w; ow <= last_w; ++ow) visit((plane * p.out_height + oh) * p.out_width + ow);
  }
}

template <typename T>
__global__ void MaxPool2dBackwardKernel(Pooling p, const T* dy, const int32_t* argmax, T* dx) {
  for (int64_t input = First(); input < p.inputs(); input += Stride()) {
    const auto place = static_cast<int32_t>(input % (p.height * p.width));
    float sum = 0;
    ForEachWindow(p, input, [&](int64_t output) {
      if (argmax[output] == place) sum += ToFloat(dy[output]);
    });
    dx[input] = ConvertTo<T>(sum);
  }
}

template <typename T>
__global__ void AveragePool2dKernel(Pooling p, float scale, const T* x, T* y) {
  for (int64_t output = First(); output < p.outputs(); output += Stride()) {
    const Window window = WindowOf(p, output);
    const T* corner = x + window.plane * p.height * p.width + window.corner;
    float sum = 0;
    for (int64_t i = 0; i < p.window; ++i) {
      for (int64_t j = 0; j < p.window; ++j) sum += ToFloat(corner[i * p.width + j]);
    }
    y[output] = ConvertTo<T>(sum * scale);
  }
}

template <typename T>
__global__ void AveragePool2dBackwardKernel(Pooling p, float scale, const T* dy, T* dx) {
  for (int64_t input = First(); input < p.inputs(); input += Stride()) {
    float sum = 0;
    ForEachWindow(p, input, [&](int64_t output) { sum += ToFloat(dy[output]) * scale; });
    dx[input] = ConvertTo<T>(sum);
  }
}

float Share(const Pool2dGeometry& g) { return 1.0f / static_cast<float>(g.window * g.window); }

template <typename T>
absl::Status LaunchMax(Stream stream, const Pooling& p, const void* x, void* y, int32_t* argmax) {
  RUBATO_CUDA_LAUNCH(MaxPool2dKernel<T>, Blocks(p.outputs()), kThreads, stream, p, static_cast<const T*>(x),
                     static_cast<T*>(y), argmax);
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchMaxBackward(Stream stream, const Pooling& p, const void* dy, const int32_t* argmax, void* dx) {
  RUBATO_CUDA_LAUNCH(MaxPool2dBackwardKernel<T>, Blocks(p.inputs()), kThreads, stream, p, static_cast<const T*>(dy),
                     argmax, static_cast<T*>(dx));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchAverage(Stream stream, const Pooling& p, float share, const void* x, void* y) {
  RUBATO_CUDA_LAUNCH(AveragePool2dKernel<T>, Blocks(p.outputs()), kThreads, stream, p, share, static_cast<const T*>(x),
                     static_cast<T*>(y));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchAverageBackward(Stream stream, const Pooling& p, float share, const void* dy, void* dx) {
  RUBATO_CUDA_LAUNCH(AveragePool2dBackwardKernel<T>, Blocks(p.inputs()), kThreads, stream, p, share,
                     static_cast<const T*>(dy), static_cast<T*>(dx));
  return absl::OkStatus();
}

}  // namespace

absl::Status MaxPool2d(Stream stream, ElementType type, const Pool2dGeometry& geometry, int64_t batch, const void* x,
                       void* y, int32_t* argmax) {
  const Pooling p(geometry, batch);
  RUBATO_CUDA_FOR_TYPE(type, LaunchMax, stream, p, x, y, argmax);
}

absl::Status MaxPool2dBackward(Stream stream, ElementType type, const Pool2dGeometry& geometry, int64_t batch,
                               const void* dy, const int32_t* argmax, void* dx) {
  const Pooling p(geometry, batch);
  RUBATO_CUDA_FOR_TYPE(type, LaunchMaxBackward, stream, p, dy, argmax, dx);
}

absl::Status AveragePool2d(Stream stream, ElementType type, const Pool2dGeometry& geometry, int64_t batch,
                           const void* x, void* y) {
  const Pooling p(geometry, batch);
  RUBATO_CUDA_FOR_TYPE(type, LaunchAverage, stream, p, Share(geometry), x, y);
}

absl::Status AveragePool2dBackward(Stream stream, ElementType type, const Pool2dGeometry& geometry, int64_t batch,
                                   const void* dy, void* dx) {
  const Pooling p(geometry, batch);
  RUBATO_CUDA_FOR_TYPE(type, LaunchAverageBackward, stream, p, Share(geometry), dy, dx);
}

}  // namespace rubato::cuda
