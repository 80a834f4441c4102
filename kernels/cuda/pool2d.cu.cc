#include "kernels/cuda/pool2d.h"

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

__global__ void MaxPool2dKernel(Pooling p, const float* x, float* y, int32_t* argmax) {
  for (int64_t output = First(); output < p.outputs(); output += Stride()) {
    const Window window = WindowOf(p, output);
    const float* plane = x + window.plane * p.height * p.width;
    int64_t best_at = window.corner;
    float best = plane[best_at];
    for (int64_t i = 0; i < p.window; ++i) {
      for (int64_t j = 0; j < p.window; ++j) {
        const int64_t at = window.corner + i * p.width + j;
        // A NaN is taken, and nothing is larger than it.
        if (plane[at] > best || isnan(plane[at])) {
          best = plane[at];
          best_at = at;
        }
      }
    }
    y[output] = best;
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

__global__ void MaxPool2dBackwardKernel(Pooling p, const float* dy, const int32_t* argmax, float* dx) {
  for (int64_t input = First(); input < p.inputs(); input += Stride()) {
    const auto place = static_cast<int32_t>(input % (p.height * p.width));
    float sum = 0;
    ForEachWindow(p, input, [&](int64_t output) {
      if (argmax[output] == place) sum += dy[output];
    });
    dx[input] = sum;
  }
}

__global__ void AveragePool2dKernel(Pooling p, float scale, const float* x, float* y) {
  for (int64_t output = First(); output < p.outputs(); output += Stride()) {
    const Window window = WindowOf(p, output);
    const float* corner = x + window.plane * p.height * p.width + window.corner;
    float sum = 0;
    for (int64_t i = 0; i < p.window; ++i) {
      for (int64_t j = 0; j < p.window; ++j) sum += corner[i * p.width + j];
    }
    y[output] = sum * scale;
  }
}

__global__ void AveragePool2dBackwardKernel(Pooling p, float scale, const float* dy, float* dx) {
  for (int64_t input = First(); input < p.inputs(); input += Stride()) {
    float sum = 0;
    ForEachWindow(p, input, [&](int64_t output) { sum += dy[output] * scale; });
    dx[input] = sum;
  }
}

float Share(const Pool2dGeometry& g) { return 1.0f / static_cast<float>(g.window * g.window); }

}  // namespace

absl::Status MaxPool2d(Stream stream, const Pool2dGeometry& geometry, int64_t batch, const float* x, float* y,
                       int32_t* argmax) {
  const Pooling p(geometry, batch);
  RUBATO_CUDA_LAUNCH(MaxPool2dKernel, Blocks(p.outputs()), kThreads, stream, p, x, y, argmax);
  return absl::OkStatus();
}

absl::Status MaxPool2dBackward(Stream stream, const Pool2dGeometry& geometry, int64_t batch, const float* dy,
                               const int32_t* argmax, float* dx) {
  const Pooling p(geometry, batch);
  RUBATO_CUDA_LAUNCH(MaxPool2dBackwardKernel, Blocks(p.inputs()), kThreads, stream, p, dy, argmax, dx);
  return absl::OkStatus();
}

absl::Status AveragePool2d(Stream stream, const Pool2dGeometry& geometry, int64_t batch, const float* x, float* y) {
  const Pooling p(geometry, batch);
  RUBATO_CUDA_LAUNCH(AveragePool2dKernel, Blocks(p.outputs()), kThreads, stream, p, Share(geometry), x, y);
  return absl::OkStatus();
}

absl::Status AveragePool2dBackward(Stream stream, const Pool2dGeometry& geometry, int64_t batch, const float* dy,
                                   float* dx) {
  const Pooling p(geometry, batch);
  RUBATO_CUDA_LAUNCH(AveragePool2dBackwardKernel, Blocks(p.inputs()), kThreads, stream, p, Share(geometry), dy, dx);
  return absl::OkStatus();
}

}  // namespace rubato::cuda
