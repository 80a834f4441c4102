#include "kernels/cpu/group_norm.h"

#include <cmath>
#include <vector>

#include "kernels/cpu/row_statistics.h"

namespace rubato::cpu {
namespace {

// Sums over one channel's plane of its gradient, and of that times x_hat.
struct PlaneSums {
  double direct = 0, along = 0;
};

PlaneSums SumPlane(const float* x, const float* dy, int64_t n, float mean, float inverse_deviation) {
  double direct = 0, along = 0;
#pragma omp simd reduction(+ : direct, along)
  for (int64_t i = 0; i < n; ++i) {
    direct += dy[i];
    along += dy[i] * ((x[i] - mean) * inverse_deviation);
  }
  return {direct, along};
}

}  // namespace

void GroupNorm(const GroupNormSizes& sizes, float epsilon, const float* x, const float* gain, const float* bias,
               float* y, float* mean, float* inverse_deviation) {
  const int64_t channels = sizes.channels / sizes.groups, elements = channels * sizes.inner;
  for (int64_t at = 0; at < sizes.batch * sizes.groups; ++at) {
    const double group_mean = Mean(x, elements);
    const double inverse = 1 / std::sqrt(Variance(x, elements, group_mean) + epsilon);
    const float m = mean[at] = static_cast<float>(group_mean);
    const float r = inverse_deviation[at] = static_cast<float>(inverse);
    for (int64_t c = 0; c < channels; ++c, x += sizes.inner, y += sizes.inner) {
      const int64_t channel = at % sizes.groups * channels + c;
      const float g = gain[channel], b = bias[channel];
#pragma omp simd
      for (int64_t i = 0; i < sizes.inner; ++i) y[i] = g * ((x[i] - m) * r) + b;
    }
  }
}

void GroupNormBackward(const GroupNormSizes& sizes, const float* x, const float* gain, const float* mean,
                       const float* inverse_deviation, const float* dy, bool accumulate, float* dx, float* dgain,
                       float* dbias) {
  const int64_t channels = sizes.channels / sizes.groups, inner = sizes.inner;
  // Doubles, so that the sums over a large batch keep their precision.
  std::vector<PlaneSums> sums(sizes.channels);
  for (int64_t at = 0; at < sizes.batch * sizes.groups; ++at) {
    const float m = mean[at], r = inverse_deviation[at];
    const int64_t first = at % sizes.groups * channels, begin = at * channels * inner;
    // Means over the group of the gradient at x_hat, and of that times x_hat.
    double direct = 0, along = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const PlaneSums plane = SumPlane(x + begin + c * inner, dy + begin + c * inner, inner, m, r);
      sums[first + c].direct += plane.direct;
      sums[first + c].along += plane.along;
      direct += plane.direct * gain[first + c];
      along += plane.along * gain[first + c];
    }
    if (dx == nullptr) continue;
    const double elements = static_cast<double>(channels * inner);
    const auto a = static_cast<float>(direct / elements), b = static_cast<float>(along / elements);
    for (int64_t c = 0; c < channels; ++c) {
      const float* xc = x + begin + c * inner;
      const float* dyc = dy + begin + c * inner;
      float* dxc = dx + begin + c * inner;
      const float g = gain[first + c];
#pragma omp simd
      for (int64_t i = 0; i < inner; ++i) dxc[i] = r * (dyc[i] * g - a - (xc[i] - m) * r * b);
    }
  }
  for (int64_t c = 0; c < sizes.channels; ++c) {
    dgain[c] = static_cast<float>(sums[c].along) + (accumulate ? dgain[c] : 0.0f);
    dbias[c] = static_cast<float>(sums[c].direct) + (accumulate ? dbias[c] : 0.0f);
  }
}

}  // namespace rubato::cpu
