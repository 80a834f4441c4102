#include "kernels/cpu/interaction.h"

#include <algorithm>
#include <vector>

namespace rubato::cpu {
namespace {

// Sums that are computed together, in registers. Rows of what they are made of are padded with zeros to a multiple.
constexpr int64_t kBlock = 8;

int64_t Padded(int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

// sums[i] = the sum of factors[j] * rows[j * stride + i] over j < count, for i < kBlock.
inline void WeightedSum(const float* factors, const float* rows, int64_t count, int64_t stride, float* sums) {
  float block[kBlock] = {};
  for (int64_t j = 0; j < count; ++j) {
    const float factor = factors[j];
    const float* const row = rows + j * stride;
#pragma omp simd
    for (int64_t i = 0; i < kBlock; ++i) block[i] += factor * row[i];
  }
  std::copy_n(block, kBlock, sums);
}

}  // namespace

void DotInteraction(const InteractionSizes& sizes, const float* x, float* y) {
  const int64_t vectors = sizes.vectors, width = sizes.width, stride = Padded(vectors);
  std::vector<float> columns(width * stride);  // x transposed.
  float sums[kBlock];
  for (int64_t row = 0; row < sizes.rows; ++row, x += sizes.inputs()) {
    y = std::copy_n(x, width, y);
    for (int64_t i = 0; i < vectors; ++i) {
      for (int64_t k = 0; k < width; ++k) columns[k * stride + i] = x[i * width + k];
    }
    for (int64_t i = 1; i < vectors; ++i) {
      for (int64_t j = 0; j < i; j += kBlock) {
        WeightedSum(x + i * width, columns.data() + j, width, stride, sums);
        y = std::copy_n(sums, std::min(kBlock, i - j), y);
      }
    }
  }
}

void DotInteractionBackward(const InteractionSizes& sizes, const float* x, const float* dy, float* dx) {
  const int64_t vectors = sizes.vectors, width = sizes.width, stride = Padded(width);
  std::vector<float> padded(vectors * stride), factors(vectors);
  float sums[kBlock];
  for (int64_t row = 0; row < sizes.rows; ++row, x += sizes.inputs()) {
    const float *const dfirst = dy, *const ddots = dy + width;
    dy = ddots + sizes.dots();
    for (int64_t i = 0; i < vectors; ++i) std::copy_n(x + i * width, width, padded.data() + i * stride);
    for (int64_t i = 0; i < vectors; ++i) {
      // Of the pairs that the vector is in.
      std::copy_n(ddots + i * (i - 1) / 2, i, factors.data());
      factors[i] = 0;
      for (int64_t j = i + 1; j < vectors; ++j) factors[j] = ddots[j * (j - 1) / 2 + i];
      for (int64_t k = 0; k < width; k += kBlock) {
        WeightedSum(factors.data(), padded.data() + k, vectors, stride, sums);
        const int64_t count = std::min(kBlock, width - k);
        for (int64_t at = 0; at < count; ++at) dx[at] = sums[at] + (i == 0 ? dfirst[k + at] : 0.0f);
        dx += count;
      }
    }
  }
}

void FactorizationMachine(const InteractionSizes& sizes, const float* x, float* y) {
  // Each vector meets the sum of those before it: nothing cancels, as it would in half of |sum|^2 - sum of |x|^2.
  std::vector<float> before(sizes.width), products(sizes.width);
  for (int64_t row = 0; row < sizes.rows; ++row) {
    std::fill(before.begin(), before.end(), 0.0f);
    std::fill(products.begin(), products.end(), 0.0f);
    float *const sum = before.data(), *const product = products.data();
    for (int64_t i = 0; i < sizes.vectors; ++i, x += sizes.width) {
#pragma omp simd
      for (int64_t k = 0; k < sizes.width; ++k) {
        product[k] += sum[k] * x[k];
        sum[k] += x[k];
      }
    }
    double total = 0;
    for (const float value : products) total += value;
    y[row] = static_cast<float>(total);
  }
}

void FactorizationMachineBackward(const InteractionSizes& sizes, const float* x, const float* dy, float* dx) {
  std::vector<float> sums(sizes.width);
  for (int64_t row = 0; row < sizes.rows; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    float* const sum = sums.data();
    for (int64_t i = 0; i < sizes.vectors; ++i) {
#pragma omp simd
      for (int64_t k = 0; k < sizes.width; ++k) sum[k] += x[i * sizes.width + k];
    }
    for (int64_t i = 0; i < sizes.vectors; ++i, x += sizes.width, dx += sizes.width) {
#pragma omp simd
      for (int64_t k = 0; k < sizes.width; ++k) dx[k] = dy[row] * (sum[k] - x[k]);
    }
  }
}

}  // namespace rubato::cpu
