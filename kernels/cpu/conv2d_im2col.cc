#include <algorithm>
#include <cstring>
#include <vector>

#include "common/status.h"
#include "kernels/cpu/conv2d.h"
#include "kernels/cpu/sgemm.h"

namespace rubato::cpu {
namespace {

// The output positions along one axis whose input position, position * stride + tap - padding, is inside the image.
struct Span {
  int64_t begin, end;
};

Span InsideSpan(int64_t outputs, int64_t inputs, int64_t stride, int64_t shift) {
  // position * stride + shift >= 0, and < inputs.
  int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  int64_t end = shift >= inputs ? 0 : (inputs - shift + stride - 1) / stride;
  begin = std::min(begin, outputs);
  return {begin, std::clamp(end, begin, outputs)};
}

// Calls visit(offset of a line of output positions in the im2col matrix, image offset of position 0 of that line, the
// positions that are inside the image) for each line under each tap of the kernel.
template <typename Visit>
void ForEachLine(const Conv2dGeometry& g, const Visit& visit) {
  const int64_t out_h = g.output_height(), out_w = g.output_width();
  int64_t row = 0;
  for (int64_t c = 0; c < g.channels; ++c) {
    for (int64_t i = 0; i < g.kernel; ++i) {
      for (int64_t j = 0; j < g.kernel; ++j, ++row) {
        const Span inside = InsideSpan(out_w, g.width, g.stride, j - g.padding);
        for (int64_t oh = 0; oh < out_h; ++oh) {
          const int64_t h = oh * g.stride + i - g.padding;
          const bool outside = h < 0 || h >= g.height;
          const int64_t line = (c * g.height + h) * g.width + j - g.padding;
          visit(row * out_h * out_w + oh * out_w, line, outside ? Span{0, 0} : inside);
        }
      }
    }
  }
}

// columns [channels * kernel * kernel, output positions] from one image.
void Im2col(const Conv2dGeometry& g, const float* __restrict image, float* __restrict columns) {
  const int64_t out_w = g.output_width(), stride = g.stride;
  ForEachLine(g, [&](int64_t to, int64_t from, Span inside) {
    float* __restrict line = columns + to;
    std::fill(line, line + inside.begin, 0.0f);
    std::fill(line + inside.end, line + out_w, 0.0f);
    if (stride == 1) {
      std::memcpy(line + inside.begin, image + from + inside.begin, (inside.end - inside.begin) * sizeof(float));
    } else {
      for (int64_t ow = inside.begin; ow < inside.end; ++ow) line[ow] = image[from + ow * stride];
    }
  });
}

// Adds each column element to the image element that im2col took it from.
void FoldAdd(const Conv2dGeometry& g, const float* __restrict columns, float* __restrict image) {
  const int64_t stride = g.stride;
  ForEachLine(g, [&](int64_t from, int64_t to, Span inside) {
    const float* __restrict line = columns + from;
    if (stride == 1) {
      float* __restrict target = image + to;
      for (int64_t ow = inside.begin; ow < inside.end; ++ow) target[ow] += line[ow];
    } else {
      for (int64_t ow = inside.begin; ow < inside.end; ++ow) image[to + ow * stride] += line[ow];
    }
  });
}

class Im2colConv2d : public Conv2d {
 public:
  explicit Im2colConv2d(int threads) : threads_(threads) {}

  absl::Status Forward(const Conv2dGeometry& g, int64_t batch, const float* x, const float* weight, float* y) override {
    const Sizes s = Prepare(g);
    for (int64_t n = 0; n < batch; ++n) {
      Im2col(g, x + n * s.input, columns_.data());
      RUBATO_RETURN_IF_ERROR(Sgemm(threads_, false, false, g.filters, s.positions, s.taps, 1, weight, columns_.data(),
                                   0, y + n * s.output));
    }
    return absl::OkStatus();
  }

  absl::Status BackwardData(const Conv2dGeometry& g, int64_t batch, const float* dy, const float* weight,
                            float* dx) override {
    const Sizes s = Prepare(g);
    std::memset(dx, 0, batch * s.input * sizeof(float));
    for (int64_t n = 0; n < batch; ++n) {
      RUBATO_RETURN_IF_ERROR(Sgemm(threads_, true, false, s.taps, s.positions, g.filters, 1, weight, dy + n * s.output,
                                   0, columns_.data()));
      FoldAdd(g, columns_.data(), dx + n * s.input);
    }
    return absl::OkStatus();
  }

  absl::Status BackwardWeight(const Conv2dGeometry& g, int64_t batch, const float* x, const float* dy, bool accumulate,
                              float* dweight) override {
    const Sizes s = Prepare(g);
    if (batch == 0 && !accumulate) std::memset(dweight, 0, g.filters * s.taps * sizeof(float));
    for (int64_t n = 0; n < batch; ++n) {
      Im2col(g, x + n * s.input, columns_.data());
      float beta = n > 0 || accumulate ? 1 : 0;
      RUBATO_RETURN_IF_ERROR(Sgemm(threads_, false, true, g.filters, s.taps, s.positions, 1, dy + n * s.output,
                                   columns_.data(), beta, dweight));
    }
    return absl::OkStatus();
  }

 private:
  struct Sizes {
    int64_t input, output, positions, taps;
  };

  Sizes Prepare(const Conv2dGeometry& g) {
    const int64_t positions = g.output_height() * g.output_width();
    const int64_t taps = g.channels * g.kernel * g.kernel;
    columns_.resize(std::max(columns_.size(), static_cast<size_t>(positions * taps)));
    return {g.channels * g.height * g.width, g.filters * positions, positions, taps};
  }

  const int threads_;
  std::vector<float> columns_;
};

}  // namespace

std::unique_ptr<Conv2d> NewIm2colConv2d(int threads) { return std::make_unique<Im2colConv2d>(threads); }

}  // namespace rubato::cpu
