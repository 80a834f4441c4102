#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "common/status.h"
#include "kernels/cpu/sgemm.h"
#include "kernels/cpu/vector_math.h"

namespace rubato::cpu {
namespace {

// Rows whose scores are computed together: enough for a product to be quick, few enough for the scores of a long
// sequence to stay in the cache.
constexpr int64_t kBlockRows = 64;

// to [rows, width] = factor * rows of `width` that are `stride` apart.
void Gather(const float* from, int64_t rows, int64_t width, int64_t stride, float factor, float* to) {
  for (int64_t i = 0; i < rows; ++i, from += stride, to += width) {
    for (int64_t j = 0; j < width; ++j) to[j] = factor * from[j];
  }
}

void Scatter(const float* from, int64_t rows, int64_t width, int64_t stride, float* to) {
  for (int64_t i = 0; i < rows; ++i, from += width, to += stride) std::copy_n(from, width, to);
}

float Max(const float* x, int64_t n) {
  float max = x[0];
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

// x = e^(x - shift); returns the sum.
float Exponentiate(float shift, int64_t n, float* x) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    x[i] = FastExp(x[i] - shift);
    sum += x[i];
  }
  return sum;
}

float Dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void Attention::GatherHead(const AttentionGeometry& g, const float* qkv) {
  const int64_t elements = g.sequence * g.head_width, stride = 3 * g.width();
  for (std::vector<float>* values : {&q_, &k_, &v_, &y_}) values->resize(elements);
  scores_.resize(std::min(kBlockRows, g.sequence) * g.sequence);
  const float scale = 1 / std::sqrt(static_cast<float>(g.head_width));
  Gather(qkv, g.sequence, g.head_width, stride, scale, q_.data());
  Gather(qkv + g.width(), g.sequence, g.head_width, stride, 1, k_.data());
  Gather(qkv + 2 * g.width(), g.sequence, g.head_width, stride, 1, v_.data());
}

absl::Status Attention::Forward(const AttentionGeometry& g, int64_t batch, const float* qkv, float* y,
                                float* log_sum_exp) {
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t head = 0; head < g.heads; ++head) {
      const int64_t column = head * g.head_width, row = n * g.sequence;
      GatherHead(g, qkv + row * 3 * g.width() + column);
      RUBATO_RETURN_IF_ERROR(
          HeadForward(g, y + row * g.width() + column, log_sum_exp + (n * g.heads + head) * g.sequence));
    }
  }
  return absl::OkStatus();
}

absl::Status Attention::HeadForward(const AttentionGeometry& g, float* y, float* log_sum_exp) {
  const int64_t width = g.head_width;
  float* scores = scores_.data();
  for (int64_t begin = 0; begin < g.sequence; begin += kBlockRows) {
    const int64_t end = std::min(begin + kBlockRows, g.sequence), rows = end - begin;
    RUBATO_RETURN_IF_ERROR(
        Sgemm(threads_, false, true, rows, end, width, 1, q_.data() + begin * width, k_.data(), 0, scores));
    float sums[kBlockRows];
    for (int64_t i = 0; i < rows; ++i) {
      float* row = scores + i * end;
      const int64_t visible = begin + i + 1;
      const float max = Max(row, visible);
      sums[i] = Exponentiate(max, visible, row);
      std::fill(row + visible, row + end, 0.0f);
      log_sum_exp[begin + i] = max + std::log(sums[i]);
    }
    float* out = y_.data() + begin * width;
    RUBATO_RETURN_IF_ERROR(Sgemm(threads_, false, false, rows, width, end, 1, scores, v_.data(), 0, out));
    for (int64_t i = 0; i < rows; ++i) {
      const float factor = 1 / sums[i];
      for (int64_t j = 0; j < width; ++j) out[i * width + j] *= factor;
    }
  }
  Scatter(y_.data(), g.sequence, width, g.width(), y);
  return absl::OkStatus();
}

absl::Status Attention::Backward(const AttentionGeometry& g, int64_t batch, const float* qkv, const float* y,
                                 const float* log_sum_exp, const float* dy, float* dqkv) {
  for (std::vector<float>* values : {&dq_, &dk_, &dv_, &dy_}) values->resize(g.sequence * g.head_width);
  dscores_.resize(std::min(kBlockRows, g.sequence) * g.sequence);
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t head = 0; head < g.heads; ++head) {
      const int64_t row = n * g.sequence, in = row * 3 * g.width() + head * g.head_width;
      const int64_t out = row * g.width() + head * g.head_width;
      GatherHead(g, qkv + in);
      RUBATO_RETURN_IF_ERROR(
          HeadBackward(g, y + out, log_sum_exp + (n * g.heads + head) * g.sequence, dy + out, dqkv + in));
    }
  }
  return absl::OkStatus();
}

absl::Status Attention::HeadBackward(const AttentionGeometry& g, const float* y, const float* log_sum_exp,
                                     const float* dy, float* dqkv) {
  const int64_t width = g.head_width;
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  Gather(y, g.sequence, width, g.width(), 1, y_.data());
  Gather(dy, g.sequence, width, g.width(), 1, dy_.data());
  std::fill(dk_.begin(), dk_.end(), 0.0f);
  std::fill(dv_.begin(), dv_.end(), 0.0f);
  float *p = scores_.data(), *ds = dscores_.data();
  for (int64_t begin = 0; begin < g.sequence; begin += kBlockRows) {
    const int64_t end = std::min(begin + kBlockRows, g.sequence), rows = end - begin;
    const float *q = q_.data() + begin * width, *dout = dy_.data() + begin * width;
    RUBATO_RETURN_IF_ERROR(Sgemm(threads_, false, true, rows, end, width, 1, q, k_.data(), 0, p));
    RUBATO_RETURN_IF_ERROR(Sgemm(threads_, false, true, rows, end, width, 1, dout, v_.data(), 0, ds));
    for (int64_t i = 0; i < rows; ++i) {
      float *p_row = p + i * end, *ds_row = ds + i * end;
      const int64_t visible = begin + i + 1;
      Exponentiate(log_sum_exp[begin + i], visible, p_row);
      // The sum over keys of p times its gradient.
      const float mean = Dot(y_.data() + (begin + i) * width, dout + i * width, width);
#pragma omp simd
      for (int64_t j = 0; j < visible; ++j) ds_row[j] = p_row[j] * (ds_row[j] - mean);
      std::fill(p_row + visible, p_row + end, 0.0f);
      std::fill(ds_row + visible, ds_row + end, 0.0f);
    }
    RUBATO_RETURN_IF_ERROR(
        Sgemm(threads_, false, false, rows, width, end, scale, ds, k_.data(), 0, dq_.data() + begin * width));
    RUBATO_RETURN_IF_ERROR(Sgemm(threads_, true, false, end, width, rows, 1, ds, q, 1, dk_.data()));
    RUBATO_RETURN_IF_ERROR(Sgemm(threads_, true, false, end, width, rows, 1, p, dout, 1, dv_.data()));
  }
  Scatter(dq_.data(), g.sequence, width, 3 * g.width(), dqkv);
  Scatter(dk_.data(), g.sequence, width, 3 * g.width(), dqkv + g.width());
  Scatter(dv_.data(), g.sequence, width, 3 * g.width(), dqkv + 2 * g.width());
  return absl::OkStatus();
}

}  // namespace rubato::cpu
