#ifndef RUBATO_KERNELS_CONFORMANCE_REFERENCE_H_
#define RUBATO_KERNELS_CONFORMANCE_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "kernels/geometry.h"

// What the operations of Backend mean, written for plainness: float64, one element at a time. Arguments as there.
namespace rubato::reference {

using Values = std::vector<double>;

// Row-major op(a) [m, k] times op(b) [k, n].
Values Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha, const Values& a,
            const Values& b, double beta, const Values& c);

Values Conv2d(const Conv2dGeometry& g, int64_t batch, const Values& x, const Values& weight);
Values Conv2dBackwardData(const Conv2dGeometry& g, int64_t batch, const Values& dy, const Values& weight);
Values Conv2dBackwardWeight(const Conv2dGeometry& g, int64_t batch, const Values& x, const Values& dy);

// Places of the maxima in their planes, row * width + column.
std::vector<int32_t> MaxPool2dPlaces(const Pool2dGeometry& g, int64_t batch, const Values& x);
Values AveragePool2d(const Pool2dGeometry& g, int64_t batch, const Values& x);
Values AveragePool2dBackward(const Pool2dGeometry& g, int64_t batch, const Values& dy);

double Activate(Activation activation, double x);
double ActivateDerivative(Activation activation, double x);

struct LayerNormResult {
  Values y, mean, inverse_deviation;
};
LayerNormResult LayerNorm(double epsilon, int64_t rows, const Values& x, const Values& gain, const Values& bias);

struct LayerNormGradients {
  Values dx, dgain, dbias;
};
LayerNormGradients LayerNormBackward(double epsilon, int64_t rows, const Values& x, const Values& gain,
                                     const Values& dy);

// Channels of x [batch, channels, inner].
LayerNormResult GroupNorm(int64_t groups, double epsilon, int64_t batch, const Values& x, const Values& gain,
                          const Values& bias);
LayerNormGradients GroupNormBackward(int64_t groups, double epsilon, int64_t batch, const Values& x, const Values& gain,
                                     const Values& dy);

// Rows of vectors of `width`: the first of them and the dot products of pairs, or the sum of these products.
Values DotInteraction(int64_t rows, int64_t width, const Values& x);
Values DotInteractionBackward(int64_t rows, int64_t width, const Values& x, const Values& dy);
Values FactorizationMachine(int64_t rows, int64_t width, const Values& x);
Values FactorizationMachineBackward(int64_t rows, int64_t width, const Values& x, const Values& dy);

struct AttentionResult {
  Values y, log_sum_exp;
};
AttentionResult CausalAttention(const AttentionGeometry& g, int64_t batch, const Values& qkv);
Values CausalAttentionBackward(const AttentionGeometry& g, int64_t batch, const Values& qkv, const Values& dy);

struct LossResult {
  double loss_sum = 0;
  int64_t correct = 0;
  Values gradient;
};
LossResult SoftmaxCrossEntropy(const Values& logits, const std::vector<int32_t>& classes, double gradient_scale);
LossResult BinaryCrossEntropy(const Values& logits, const std::vector<int32_t>& classes, double gradient_scale);
LossResult MeanSquaredError(int64_t rows, const Values& outputs, const Values& targets, double gradient_scale);

}  // namespace rubato::reference

#endif  // RUBATO_KERNELS_CONFORMANCE_REFERENCE_H_
