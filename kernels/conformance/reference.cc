#include "kernels/conformance/reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

namespace rubato::reference {
namespace {

// Calls visit(index of y, index of weight, index of x) for every product in a convolution.
template <typename Visit>
void ForEachProduct(const Conv2dGeometry& g, int64_t batch, const Visit& visit) {
  const int64_t out_h = g.output_height(), out_w = g.output_width();
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t f = 0; f < g.filters; ++f)
      for (int64_t oh = 0; oh < out_h; ++oh)
        for (int64_t ow = 0; ow < out_w; ++ow)
          for (int64_t c = 0; c < g.channels; ++c)
            for (int64_t i = 0; i < g.kernel; ++i)
              for (int64_t j = 0; j < g.kernel; ++j) {
                const int64_t h = oh * g.stride + i - g.padding, w = ow * g.stride + j - g.padding;
                if (h < 0 || h >= g.height || w < 0 || w >= g.width) continue;
                visit(((n * g.filters + f) * out_h + oh) * out_w + ow,
                      ((f * g.channels + c) * g.kernel + i) * g.kernel + j,
                      ((n * g.channels + c) * g.height + h) * g.width + w);
              }
}

// Calls visit(index of y, plane, place in the plane) for every element of every window.
template <typename Visit>
void ForEachInWindows(const Pool2dGeometry& g, int64_t batch, const Visit& visit) {
  const int64_t out_h = g.output_height(), out_w = g.output_width();
  for (int64_t plane = 0; plane < batch * g.channels; ++plane)
    for (int64_t oh = 0; oh < out_h; ++oh)
      for (int64_t ow = 0; ow < out_w; ++ow)
        for (int64_t i = 0; i < g.window; ++i)
          for (int64_t j = 0; j < g.window; ++j)
            visit((plane * out_h + oh) * out_w + ow, plane, (oh * g.stride + i) * g.width + ow * g.stride + j);
}

// Indices into the tensors of an attention.
struct AttentionIndex {
  const AttentionGeometry& g;
  int64_t example, head;

  int64_t Query(int64_t row, int64_t i) const { return Part(0, row, i); }
  int64_t Key(int64_t row, int64_t i) const { return Part(1, row, i); }
  int64_t Value(int64_t row, int64_t i) const { return Part(2, row, i); }
  int64_t Part(int64_t part, int64_t row, int64_t i) const {
    return ((example * g.sequence + row) * 3 + part) * g.width() + head * g.head_width + i;
  }
  int64_t Output(int64_t row, int64_t i) const {
    return (example * g.sequence + row) * g.width() + head * g.head_width + i;
  }
};

// Calls visit(index, row, its scores at the positions that it sees) for every row of every head.
template <typename Visit>
void ForEachAttentionRow(const AttentionGeometry& g, int64_t batch, const Values& qkv, const Visit& visit) {
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t head = 0; head < g.heads; ++head)
      for (int64_t row = 0; row < g.sequence; ++row) {
        const AttentionIndex at = {g, n, head};
        Values scores(row + 1);
        for (int64_t key = 0; key <= row; ++key)
          for (int64_t i = 0; i < g.head_width; ++i)
            scores[key] += qkv[at.Query(row, i)] * qkv[at.Key(key, i)] / std::sqrt(static_cast<double>(g.head_width));
        visit(at, row, scores);
      }
}

double LogSumExp(const Values& values) {
  const double max = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double value : values) sum += std::exp(value - max);
  return max + std::log(sum);
}

}  // namespace

Values Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha, const Values& a,
            const Values& b, double beta, const Values& c) {
  Values result(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += (transpose_a ? a[l * m + i] : a[i * k + l]) * (transpose_b ? b[j * k + l] : b[l * n + j]);
      result[i * n + j] = alpha * sum + beta * c[i * n + j];
    }
  }
  return result;
}

Values Conv2d(const Conv2dGeometry& g, int64_t batch, const Values& x, const Values& weight) {
  Values y(NumElements(g.OutputShape(batch)));
  ForEachProduct(g, batch, [&](int64_t at_y, int64_t at_w, int64_t at_x) { y[at_y] += weight[at_w] * x[at_x]; });
  return y;
}

Values Conv2dBackwardData(const Conv2dGeometry& g, int64_t batch, const Values& dy, const Values& weight) {
  Values dx(NumElements(g.InputShape(batch)));
  ForEachProduct(g, batch, [&](int64_t at_y, int64_t at_w, int64_t at_x) { dx[at_x] += weight[at_w] * dy[at_y]; });
  return dx;
}

Values Conv2dBackwardWeight(const Conv2dGeometry& g, int64_t batch, const Values& x, const Values& dy) {
  Values dweight(NumElements(g.WeightShape()));
  ForEachProduct(g, batch, [&](int64_t at_y, int64_t at_w, int64_t at_x) { dweight[at_w] += dy[at_y] * x[at_x]; });
  return dweight;
}

std::vector<int32_t> MaxPool2dPlaces(const Pool2dGeometry& g, int64_t batch, const Values& x) {
  std::vector<int32_t> places(NumElements(g.OutputShape(batch)), -1);
  ForEachInWindows(g, batch, [&](int64_t at_y, int64_t plane, int64_t place) {
    const double* values = &x[plane * g.height * g.width];
    if (places[at_y] < 0 || values[place] > values[places[at_y]]) places[at_y] = static_cast<int32_t>(place);
  });
  return places;
}

Values AveragePool2d(const Pool2dGeometry& g, int64_t batch, const Values& x) {
  Values y(NumElements(g.OutputShape(batch)));
  ForEachInWindows(g, batch, [&](int64_t at_y, int64_t plane, int64_t place) {
    y[at_y] += x[plane * g.height * g.width + place] / static_cast<double>(g.window * g.window);
  });
  return y;
}

Values AveragePool2dBackward(const Pool2dGeometry& g, int64_t batch, const Values& dy) {
  Values dx(NumElements(g.InputShape(batch)));
  ForEachInWindows(g, batch, [&](int64_t at_y, int64_t plane, int64_t place) {
    dx[plane * g.height * g.width + place] += dy[at_y] / static_cast<double>(g.window * g.window);
  });
  return dx;
}

double Activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kGelu:
      return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
  }
  return 0;
}

double ActivateDerivative(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
      return x > 0 ? 1 : 0;
    case Activation::kTanh:
      return 1 / (std::cosh(x) * std::cosh(x));
    case Activation::kGelu:
      return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  }
  return 0;
}

LayerNormResult LayerNorm(double epsilon, int64_t rows, const Values& x, const Values& gain, const Values& bias) {
  const int64_t columns = static_cast<int64_t>(gain.size());
  LayerNormResult result{Values(x.size()), Values(rows), Values(rows)};
  for (int64_t row = 0; row < rows; ++row) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < columns; ++i) mean += x[row * columns + i] / columns;
    for (int64_t i = 0; i < columns; ++i) variance += std::pow(x[row * columns + i] - mean, 2) / columns;
    const double inverse = 1 / std::sqrt(variance + epsilon);
    for (int64_t i = 0; i < columns; ++i) {
      result.y[row * columns + i] = gain[i] * (x[row * columns + i] - mean) * inverse + bias[i];
    }
    result.mean[row] = mean;
    result.inverse_deviation[row] = inverse;
  }
  return result;
}

LayerNormGradients LayerNormBackward(double epsilon, int64_t rows, const Values& x, const Values& gain,
                                     const Values& dy) {
  const int64_t columns = static_cast<int64_t>(gain.size());
  const LayerNormResult plain = LayerNorm(epsilon, rows, x, Values(columns, 1.0), Values(columns, 0.0));
  LayerNormGradients result{Values(x.size()), Values(columns), Values(columns)};
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t base = row * columns;
    for (int64_t i = 0; i < columns; ++i) {
      result.dgain[i] += dy[base + i] * plain.y[base + i];
      result.dbias[i] += dy[base + i];
      // The Jacobian of x_hat, element by element.
      for (int64_t j = 0; j < columns; ++j) {
        const double jacobian = plain.inverse_deviation[row] *
                                ((i == j ? 1.0 : 0.0) - (1 + plain.y[base + i] * plain.y[base + j]) / columns);
        result.dx[base + j] += dy[base + i] * gain[i] * jacobian;
      }
    }
  }
  return result;
}

LayerNormResult GroupNorm(int64_t groups, double epsilon, int64_t batch, const Values& x, const Values& gain,
                          const Values& bias) {
  const int64_t channels = static_cast<int64_t>(gain.size()), inner = static_cast<int64_t>(x.size()) / batch / channels;
  const int64_t columns = channels / groups * inner;
  LayerNormResult result = LayerNorm(epsilon, batch * groups, x, Values(columns, 1.0), Values(columns, 0.0));
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i) / inner % channels;
    result.y[i] = gain[channel] * result.y[i] + bias[channel];
  }
  return result;
}

LayerNormGradients GroupNormBackward(int64_t groups, double epsilon, int64_t batch, const Values& x, const Values& gain,
                                     const Values& dy) {
  const int64_t channels = static_cast<int64_t>(gain.size()), inner = static_cast<int64_t>(x.size()) / batch / channels;
  const int64_t columns = channels / groups * inner;
  const Values x_hat = LayerNorm(epsilon, batch * groups, x, Values(columns, 1.0), Values(columns, 0.0)).y;
  LayerNormGradients result{{}, Values(channels), Values(channels)};
  Values dx_hat(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i) / inner % channels;
    dx_hat[i] = dy[i] * gain[channel];
    result.dgain[channel] += dy[i] * x_hat[i];
    result.dbias[channel] += dy[i];
  }
  result.dx = LayerNormBackward(epsilon, batch * groups, x, Values(columns, 1.0), dx_hat).dx;
  return result;
}

AttentionResult CausalAttention(const AttentionGeometry& g, int64_t batch, const Values& qkv) {
  AttentionResult result{Values(NumElements(g.OutputShape(batch))), {}};
  ForEachAttentionRow(g, batch, qkv, [&](const AttentionIndex& at, int64_t row, const Values& scores) {
    const double log_sum_exp = LogSumExp(scores);
    result.log_sum_exp.push_back(log_sum_exp);
    for (int64_t key = 0; key <= row; ++key)
      for (int64_t i = 0; i < g.head_width; ++i)
        result.y[at.Output(row, i)] += std::exp(scores[key] - log_sum_exp) * qkv[at.Value(key, i)];
  });
  return result;
}

Values CausalAttentionBackward(const AttentionGeometry& g, int64_t batch, const Values& qkv, const Values& dy) {
  Values dqkv(qkv.size());
  const double scale = 1 / std::sqrt(static_cast<double>(g.head_width));
  ForEachAttentionRow(g, batch, qkv, [&](const AttentionIndex& at, int64_t row, const Values& scores) {
    const double log_sum_exp = LogSumExp(scores);
    Values dp(row + 1);
    double mean = 0;
    for (int64_t key = 0; key <= row; ++key) {
      const double p = std::exp(scores[key] - log_sum_exp);
      for (int64_t i = 0; i < g.head_width; ++i) {
        dp[key] += dy[at.Output(row, i)] * qkv[at.Value(key, i)];
        dqkv[at.Value(key, i)] += p * dy[at.Output(row, i)];
      }
      mean += p * dp[key];
    }
    for (int64_t key = 0; key <= row; ++key) {
      const double dscore = std::exp(scores[key] - log_sum_exp) * (dp[key] - mean) * scale;
      for (int64_t i = 0; i < g.head_width; ++i) {
        dqkv[at.Query(row, i)] += dscore * qkv[at.Key(key, i)];
        dqkv[at.Key(key, i)] += dscore * qkv[at.Query(row, i)];
      }
    }
  });
  return dqkv;
}

namespace {

// Calls visit(row, i, j) for the pairs i > j of the vectors in each row, in the order of the outputs.
void ForEachPair(int64_t rows, int64_t vectors, const std::function<void(int64_t, int64_t, int64_t)>& visit) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 1; i < vectors; ++i)
      for (int64_t j = 0; j < i; ++j) visit(row, i, j);
}

double Dot(const double* a, const double* b, int64_t width) { return std::inner_product(a, a + width, b, 0.0); }

}  // namespace

Values DotInteraction(int64_t rows, int64_t width, const Values& x) {
  const int64_t inputs = static_cast<int64_t>(x.size()) / rows, vectors = inputs / width;
  Values y;
  int64_t begun = 0;
  ForEachPair(rows, vectors, [&](int64_t row, int64_t i, int64_t j) {
    const double* const vector = &x[row * inputs];
    if (row == begun) {
      y.insert(y.end(), vector, vector + width);
      ++begun;
    }
    y.push_back(Dot(vector + i * width, vector + j * width, width));
  });
  return y;
}

Values DotInteractionBackward(int64_t rows, int64_t width, const Values& x, const Values& dy) {
  const int64_t inputs = static_cast<int64_t>(x.size()) / rows, vectors = inputs / width;
  const int64_t outputs = width + vectors * (vectors - 1) / 2;
  Values dx(x.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < width; ++k) dx[row * inputs + k] = dy[row * outputs + k];
  }
  ForEachPair(rows, vectors, [&](int64_t row, int64_t i, int64_t j) {
    const double ddot = dy[row * outputs + width + i * (i - 1) / 2 + j];
    for (int64_t k = 0; k < width; ++k) {
      const int64_t a = row * inputs + i * width + k, b = row * inputs + j * width + k;
      dx[a] += ddot * x[b];
      dx[b] += ddot * x[a];
    }
  });
  return dx;
}

Values FactorizationMachine(int64_t rows, int64_t width, const Values& x) {
  const int64_t inputs = static_cast<int64_t>(x.size()) / rows;
  Values y(rows);
  ForEachPair(rows, inputs / width, [&](int64_t row, int64_t i, int64_t j) {
    y[row] += Dot(&x[row * inputs + i * width], &x[row * inputs + j * width], width);
  });
  return y;
}

Values FactorizationMachineBackward(int64_t rows, int64_t width, const Values& x, const Values& dy) {
  const int64_t inputs = static_cast<int64_t>(x.size()) / rows, vectors = inputs / width;
  // As if each of the products had a gradient of its own.
  Values ddots;
  for (int64_t row = 0; row < rows; ++row) {
    ddots.insert(ddots.end(), width, 0.0);
    ddots.insert(ddots.end(), vectors * (vectors - 1) / 2, dy[row]);
  }
  return DotInteractionBackward(rows, width, x, ddots);
}

LossResult SoftmaxCrossEntropy(const Values& logits, const std::vector<int32_t>& classes, double gradient_scale) {
  const size_t columns = logits.size() / classes.size();
  LossResult result;
  result.gradient.resize(logits.size());
  for (size_t row = 0; row < classes.size(); ++row) {
    const double* z = &logits[row * columns];
    const double max = *std::max_element(z, z + columns);
    double total = 0;
    for (size_t i = 0; i < columns; ++i) total += std::exp(z[i] - max);
    result.loss_sum += std::log(total) + max - z[classes[row]];
    result.correct += std::max_element(z, z + columns) - z == classes[row];
    for (size_t i = 0; i < columns; ++i) {
      const double target = static_cast<int32_t>(i) == classes[row] ? 1 : 0;
      result.gradient[row * columns + i] = gradient_scale * (std::exp(z[i] - max) / total - target);
    }
  }
  return result;
}

LossResult BinaryCrossEntropy(const Values& logits, const std::vector<int32_t>& classes, double gradient_scale) {
  LossResult result;
  for (size_t row = 0; row < classes.size(); ++row) {
    const double z = logits[row], label = classes[row];
    result.loss_sum += std::max(z, 0.0) - z * label + std::log1p(std::exp(-std::abs(z)));
    result.correct += (z > 0) == (classes[row] == 1);
    result.gradient.push_back(gradient_scale * (1 / (1 + std::exp(-z)) - label));
  }
  return result;
}

LossResult MeanSquaredError(int64_t rows, const Values& outputs, const Values& targets, double gradient_scale) {
  const double columns = static_cast<double>(outputs.size()) / static_cast<double>(rows);
  LossResult result;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const double difference = outputs[i] - targets[i];
    result.loss_sum += difference * difference / columns;
    result.gradient.push_back(gradient_scale * 2 * difference / columns);
  }
  return result;
}

}  // namespace rubato::reference
