#include "kernels/cpu/pool2d.h"

#include <cstring>

namespace rubato::cpu {
namespace {

// Window and stride that are known when compiling let the loops over a window unroll. 0: only known at run time.
template <int kWindow, int kStride>
void MaxPoolPlane(const Pool2dGeometry& g, const float* __restrict x, float* __restrict y, int32_t* __restrict argmax) {
  const int64_t window = kWindow == 0 ? g.window : kWindow, stride = kStride == 0 ? g.stride : kStride;
  const int64_t out_h = g.output_height(), out_w = g.output_width(), width = g.width;
  for (int64_t oh = 0; oh < out_h; ++oh) {
    for (int64_t ow = 0; ow < out_w; ++ow) {
      const int64_t first = oh * stride * width + ow * stride;
      float best = x[first];
      int32_t best_at = static_cast<int32_t>(first);
      for (int64_t i = 0; i < window; ++i) {
        for (int64_t j = 0; j < window; ++j) {
          const int64_t at = first + i * width + j;
          const float value = x[at];
          // A NaN is taken, and nothing is larger than it.
          const bool better = (value > best) | (value != value);
          best = better ? value : best;
          best_at = better ? static_cast<int32_t>(at) : best_at;
        }
      }
      y[oh * out_w + ow] = best;
      argmax[oh * out_w + ow] = best_at;
    }
  }
}

}  // namespace

void MaxPool2d(const Pool2dGeometry& g, int64_t batch, const float* x, float* y, int32_t* argmax) {
  const int64_t plane = g.height * g.width, out_plane = g.output_height() * g.output_width();
  const auto pool = g.window == 2 && g.stride == 2   ? MaxPoolPlane<2, 2>
                    : g.window == 3 && g.stride == 2 ? MaxPoolPlane<3, 2>
                                                     : MaxPoolPlane<0, 0>;
  for (int64_t n = 0; n < batch * g.channels; ++n) {
    pool(g, x + n * plane, y + n * out_plane, argmax + n * out_plane);
  }
}

void MaxPool2dBackward(const Pool2dGeometry& g, int64_t batch, const float* dy, const int32_t* argmax, float* dx) {
  const int64_t plane = g.height * g.width, out_plane = g.output_height() * g.output_width();
  std::memset(dx, 0, batch * g.channels * plane * sizeof(float));
  for (int64_t n = 0; n < batch * g.channels; ++n) {
    for (int64_t i = 0; i < out_plane; ++i) dx[argmax[i]] += dy[i];
    dx += plane;
    dy += out_plane;
    argmax += out_plane;
  }
}

void AveragePool2d(const Pool2dGeometry& g, int64_t batch, const float* x, float* y) {
  const int64_t plane = g.height * g.width, out_h = g.output_height(), out_w = g.output_width();
  const float scale = 1.0f / static_cast<float>(g.window * g.window);
  for (int64_t n = 0; n < batch * g.channels; ++n, x += plane) {
    for (int64_t oh = 0; oh < out_h; ++oh) {
      for (int64_t ow = 0; ow < out_w; ++ow) {
        const float* corner = x + oh * g.stride * g.width + ow * g.stride;
        float sum = 0;
        for (int64_t i = 0; i < g.window; ++i) {
          for (int64_t j = 0; j < g.window; ++j) sum += corner[i * g.width + j];
        }
        *y++ = sum * scale;
      }
    }
  }
}

void AveragePool2dBackward(const Pool2dGeometry& g, int64_t batch, const float* dy, float* dx) {
  const int64_t plane = g.height * g.width, out_h = g.output_height(), out_w = g.output_width();
  const float scale = 1.0f / static_cast<float>(g.window * g.window);
  std::memset(dx, 0, batch * g.channels * plane * sizeof(float));
  for (int64_t n = 0; n < batch * g.channels; ++n, dx += plane) {
    for (int64_t oh = 0; oh < out_h; ++oh) {
      for (int64_t ow = 0; ow < out_w; ++ow) {
        float* corner = dx + oh * g.stride * g.width + ow * g.stride;
        const float share = *dy++ * scale;
        for (int64_t i = 0; i < g.window; ++i) {
          for (int64_t j = 0; j < g.window; ++j) corner[i * g.width + j] += share;
        }
      }
    }
  }
}

}  // namespace rubato::cpu
