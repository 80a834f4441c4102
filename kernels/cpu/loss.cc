#include "kernels/cpu/loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/vector_math.h"

namespace rubato::cpu {

void SoftmaxCrossEntropy(int64_t rows, int64_t columns, const float* logits, const int32_t* classes,
                         float gradient_scale, float* gradient, double* sums) {
  double loss = 0;
  int64_t correct = 0;
  std::vector<float> exponentials(columns);
  for (int64_t row = 0; row < rows; ++row, logits += columns) {
    const int32_t label = classes[row];
    int64_t best = 0;
    for (int64_t i = 1; i < columns; ++i) best = logits[i] > logits[best] ? i : best;
    const float max = logits[best], label_logit = logits[label];
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < columns; ++i) {
      exponentials[i] = FastExp(logits[i] - max);
      total += exponentials[i];
    }
    loss += std::log(total) - (static_cast<double>(label_logit) - max);
    // A row with a NaN has no largest logit.
    correct += best == label && std::isfinite(total);
    if (gradient == nullptr) continue;
    const float factor = static_cast<float>(gradient_scale / total);
    for (int64_t i = 0; i < columns; ++i) gradient[i] = exponentials[i] * factor;
    // Computed without the cancellation of p - 1 when p is close to one.
    double others = 0;
    for (int64_t i = 0; i < columns; ++i) others += i == label ? 0.0f : exponentials[i];
    gradient[label] = static_cast<float>(-gradient_scale * (others / total));
    gradient += columns;
  }
  sums[0] = loss;
  sums[1] = static_cast<double>(correct);
}

void BinaryCrossEntropy(int64_t rows, const float* logits, const int32_t* classes, float gradient_scale,
                        float* gradient, double* sums) {
  double loss = 0;
  int64_t correct = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const float logit = logits[row];
    const bool is_one = classes[row] == 1;
    // The logit of the other class.
    const double other = is_one ? -logit : logit;
    loss += std::max(other, 0.0) + std::log1p(std::exp(-std::abs(other)));
    correct += is_one ? logit > 0 : logit <= 0;
    if (gradient == nullptr) continue;
    // Without the cancellation of p - 1 when p is close to one.
    gradient[row] = static_cast<float>((is_one ? -gradient_scale : gradient_scale) / (1 + std::exp(-other)));
  }
  sums[0] = loss;
  sums[1] = static_cast<double>(correct);
}

void MeanSquaredError(int64_t rows, int64_t columns, const float* outputs, const float* targets, float gradient_scale,
                      float* gradient, double* sums) {
  const int64_t n = rows * columns;
  const float factor = gradient_scale * 2 / static_cast<float>(columns);
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; ++i) {
    const double difference = static_cast<double>(outputs[i]) - targets[i];
    squares += difference * difference;
  }
  if (gradient != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) gradient[i] = factor * (outputs[i] - targets[i]);
  }
  sums[0] = squares / static_cast<double>(columns);
  sums[1] = 0;
}

}  // namespace rubato::cpu
