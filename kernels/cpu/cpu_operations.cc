#include "kernels/cpu/cpu_operations.h"

#include <algorithm>
#include <cmath>

#include "common/byte_span.h"
#include "common/status.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/group_norm.h"
#include "kernels/cpu/interaction.h"
#include "kernels/cpu/layer_norm.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/pool2d.h"
#include "kernels/cpu/sgemm.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/reduce_and_apply.h"

namespace rubato {
namespace {

const float* In(const DeviceTensor& tensor) { return tensor.data<const float>(); }
float* Out(const DeviceTensor& tensor) { return tensor.data<float>(); }

cpu::GroupNormSizes NormSizes(int64_t groups, const DeviceTensor& x) {
  return {.batch = x.rows(), .channels = x.shape()[1], .inner = ChannelElements(x), .groups = groups};
}

cpu::InteractionSizes SizesOf(int64_t width, const DeviceTensor& x) {
  return {.rows = x.rows(), .vectors = x.shape()[1] / width, .width = width};
}

}  // namespace

CpuOperations::CpuOperations(int threads, bool im2col_convolutions)
    : threads_(threads),
      conv_(im2col_convolutions ? cpu::NewIm2colConv2d(threads) : cpu::NewConv2d(threads)),
      attention_(threads) {}

absl::Status CpuOperations::Fill(float value, const DeviceTensor& y) {
  cpu::Fill(value, y.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::Copy(const DeviceTensor& x, const DeviceTensor& y) {
  std::copy_n(In(x), x.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::Add(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y) {
  cpu::Add(In(a), In(b), a.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::Multiply(const DeviceTensor& a, const DeviceTensor& b, bool accumulate,
                                     const DeviceTensor& y) {
  cpu::Multiply(In(a), In(b), a.elements(), accumulate, Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::CopyColumns(const ColumnRange& range, bool accumulate, const DeviceTensor& x,
                                        const DeviceTensor& y) {
  cpu::CopyColumns(range, accumulate, x.rows(), In(x), x.columns(), Out(y), y.columns());
  return absl::OkStatus();
}

absl::Status CpuOperations::Scale(float factor, const DeviceTensor& y) {
  cpu::Scale(factor, y.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::SumOfSquares(const DeviceTensor& x, bool accumulate, const DeviceTensor& sum) {
  double* total = sum.data<double>();
  *total = cpu::SumOfSquares(In(x), x.elements()) + (accumulate ? *total : 0);
  return absl::OkStatus();
}

absl::Status CpuOperations::ScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y) {
  const double norm = std::sqrt(*sum_of_squares.data<const double>());
  if (std::isfinite(norm) && norm > max_norm) cpu::Scale(static_cast<float>(max_norm / norm), y.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::Axpy(float alpha, const DeviceTensor& x, const DeviceTensor& y) {
  cpu::Axpy(alpha, In(x), x.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::Gemm(bool transpose_a, bool transpose_b, float alpha, const DeviceTensor& a,
                                 const DeviceTensor& b, float beta, const DeviceTensor& c) {
  const GemmSizes sizes(transpose_a, transpose_b, a, b);
  return cpu::Sgemm(threads_, transpose_a, transpose_b, sizes.m, sizes.n, sizes.k, alpha, In(a), In(b), beta, Out(c));
}

absl::Status CpuOperations::Linear(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& bias,
                                   const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(Gemm(false, true, 1, x, weight, 0, y));
  return bias.empty() ? absl::OkStatus() : AddBias(bias, y);
}

absl::Status CpuOperations::LinearBackward(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& dy,
                                           bool accumulate, const DeviceTensor& dx, const DeviceTensor& dweight,
                                           const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(Gemm(true, false, 1, dy, x, accumulate ? 1 : 0, dweight));
  if (!dbias.empty()) RUBATO_RETURN_IF_ERROR(BiasGradient(dy, accumulate, dbias));
  return dx.empty() ? absl::OkStatus() : Gemm(false, false, 1, dy, weight, 0, dx);
}

absl::Status CpuOperations::LinearUnits(const UnitRange& units, const DeviceTensor& x, const DeviceTensor& weight,
                                        const DeviceTensor& y) {
  const int64_t inputs = weight.columns();
  return cpu::Sgemm(threads_, false, true, x.rows(), units.size(), inputs, 1, In(x), In(weight) + units.begin * inputs,
                    0, Out(y) + units.begin, {.a = inputs, .b = inputs, .c = weight.rows()});
}

absl::Status CpuOperations::LinearUnitsGradient(const UnitRange& units, const DeviceTensor& x, const DeviceTensor& dy,
                                                bool accumulate, const DeviceTensor& dweight) {
  const int64_t inputs = dweight.columns();
  return cpu::Sgemm(threads_, true, false, units.size(), inputs, x.rows(), 1, In(dy) + units.begin, In(x),
                    accumulate ? 1 : 0, Out(dweight) + units.begin * inputs,
                    {.a = dweight.rows(), .b = inputs, .c = inputs});
}

absl::Status CpuOperations::AddBias(const DeviceTensor& bias, const DeviceTensor& y) {
  cpu::AddBias(In(bias), y.rows(), bias.elements(), ChannelElements(y), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::BiasGradient(const DeviceTensor& dy, bool accumulate, const DeviceTensor& dbias) {
  cpu::BiasGradient(In(dy), dy.rows(), dbias.elements(), ChannelElements(dy), accumulate, Out(dbias));
  return absl::OkStatus();
}

absl::Status CpuOperations::Conv2d(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& weight,
                                   const DeviceTensor& y) {
  return conv_->Forward(geometry, x.rows(), In(x), In(weight), Out(y));
}

absl::Status CpuOperations::Conv2dBackwardData(const Conv2dGeometry& geometry, const DeviceTensor& dy,
                                               const DeviceTensor& weight, const DeviceTensor& dx) {
  return conv_->BackwardData(geometry, dx.rows(), In(dy), In(weight), Out(dx));
}

absl::Status CpuOperations::Conv2dBackwardWeight(const Conv2dGeometry& geometry, const DeviceTensor& x,
                                                 const DeviceTensor& dy, bool accumulate, const DeviceTensor& dweight) {
  return conv_->BackwardWeight(geometry, x.rows(), In(x), In(dy), accumulate, Out(dweight));
}

absl::Status CpuOperations::MaxPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                                      const DeviceTensor& argmax) {
  cpu::MaxPool2d(geometry, x.rows(), In(x), Out(y), argmax.data<int32_t>());
  return absl::OkStatus();
}

absl::Status CpuOperations::MaxPool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                              const DeviceTensor& argmax, const DeviceTensor& dx) {
  cpu::MaxPool2dBackward(geometry, dx.rows(), In(dy), argmax.data<const int32_t>(), Out(dx));
  return absl::OkStatus();
}

absl::Status CpuOperations::AveragePool2d(const Pool2dGeometry& geometry, const DeviceTensor& x,
                                          const DeviceTensor& y) {
  cpu::AveragePool2d(geometry, x.rows(), In(x), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::AveragePool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                                  const DeviceTensor& dx) {
  cpu::AveragePool2dBackward(geometry, dx.rows(), In(dy), Out(dx));
  return absl::OkStatus();
}

absl::Status CpuOperations::Activate(Activation activation, const DeviceTensor& x, const DeviceTensor& y) {
  cpu::Activate(activation, In(x), x.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::ActivateBackward(Activation activation, const DeviceTensor& x, const DeviceTensor& y,
                                             const DeviceTensor& dy, const DeviceTensor& dx) {
  cpu::ActivateBackward(activation, In(x), In(y), In(dy), x.elements(), Out(dx));
  return absl::OkStatus();
}

absl::Status CpuOperations::Dropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y) {
  cpu::Dropout(mask, In(x), x.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::LayerNorm(float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                                      const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                                      const DeviceTensor& inverse_deviation) {
  cpu::LayerNorm(epsilon, x.rows(), x.columns(), In(x), In(gain), In(bias), Out(y), Out(mean), Out(inverse_deviation));
  return absl::OkStatus();
}

absl::Status CpuOperations::LayerNormBackward(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& mean,
                                              const DeviceTensor& inverse_deviation, const DeviceTensor& dy,
                                              bool accumulate, bool add_to_dx, const DeviceTensor& dx,
                                              const DeviceTensor& dgain, const DeviceTensor& dbias) {
  cpu::LayerNormBackward(x.rows(), x.columns(), In(x), In(gain), In(mean), In(inverse_deviation), In(dy), accumulate,
                         add_to_dx, Out(dx), Out(dgain), Out(dbias));
  return absl::OkStatus();
}

absl::Status CpuOperations::GroupNorm(int64_t groups, float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                                      const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                                      const DeviceTensor& inverse_deviation) {
  cpu::GroupNorm(NormSizes(groups, x), epsilon, In(x), In(gain), In(bias), Out(y), Out(mean), Out(inverse_deviation));
  return absl::OkStatus();
}

absl::Status CpuOperations::GroupNormBackward(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain,
                                              const DeviceTensor& mean, const DeviceTensor& inverse_deviation,
                                              const DeviceTensor& dy, bool accumulate, const DeviceTensor& dx,
                                              const DeviceTensor& dgain, const DeviceTensor& dbias) {
  cpu::GroupNormBackward(NormSizes(groups, x), In(x), In(gain), In(mean), In(inverse_deviation), In(dy), accumulate,
                         Out(dx), Out(dgain), Out(dbias));
  return absl::OkStatus();
}

absl::Status CpuOperations::DotInteraction(int64_t width, const DeviceTensor& x, const DeviceTensor& y) {
  cpu::DotInteraction(SizesOf(width, x), In(x), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::DotInteractionBackward(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,
                                                   const DeviceTensor& dx) {
  cpu::DotInteractionBackward(SizesOf(width, x), In(x), In(dy), Out(dx));
  return absl::OkStatus();
}

absl::Status CpuOperations::FactorizationMachine(int64_t width, const DeviceTensor& x, const DeviceTensor& y) {
  cpu::FactorizationMachine(SizesOf(width, x), In(x), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::FactorizationMachineBackward(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,
                                                         const DeviceTensor& dx) {
  cpu::FactorizationMachineBackward(SizesOf(width, x), In(x), In(dy), Out(dx));
  return absl::OkStatus();
}

absl::Status CpuOperations::Embed(const DeviceTensor& table, const DeviceTensor& indices, const DeviceTensor& y) {
  cpu::Embed(In(table), table.columns(), indices.data<const int32_t>(), indices.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuOperations::EmbedBackward(const DeviceTensor& indices, const DeviceTensor& dy, bool accumulate,
                                          const DeviceTensor& dtable) {
  cpu::EmbedBackward(indices.data<const int32_t>(), indices.elements(), In(dy), dtable.rows(), dtable.columns(),
                     accumulate, Out(dtable));
  return absl::OkStatus();
}

absl::Status CpuOperations::CausalAttention(const AttentionGeometry& geometry, const DeviceTensor& qkv,
                                            const DeviceTensor& y, const DeviceTensor& log_sum_exp) {
  return attention_.Forward(geometry, qkv.rows(), In(qkv), Out(y), Out(log_sum_exp));
}

absl::Status CpuOperations::CausalAttentionBackward(const AttentionGeometry& geometry, const DeviceTensor& qkv,
                                                    const DeviceTensor& y, const DeviceTensor& log_sum_exp,
                                                    const DeviceTensor& dy, const DeviceTensor& dqkv) {
  return attention_.Backward(geometry, qkv.rows(), In(qkv), In(y), In(log_sum_exp), In(dy), Out(dqkv));
}

absl::Status CpuOperations::SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes,
                                                float gradient_scale, const DeviceTensor& dlogits,
                                                const DeviceTensor& sums) {
  cpu::SoftmaxCrossEntropy(logits.rows(), logits.columns(), In(logits), classes.data<const int32_t>(), gradient_scale,
                           Out(dlogits), sums.data<double>());
  return absl::OkStatus();
}

absl::Status CpuOperations::BinaryCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes,
                                               float gradient_scale, const DeviceTensor& dlogits,
                                               const DeviceTensor& sums) {
  cpu::BinaryCrossEntropy(logits.rows(), In(logits), classes.data<const int32_t>(), gradient_scale, Out(dlogits),
                          sums.data<double>());
  return absl::OkStatus();
}

absl::Status CpuOperations::MeanSquaredError(const DeviceTensor& outputs, const DeviceTensor& targets,
                                             float gradient_scale, const DeviceTensor& doutputs,
                                             const DeviceTensor& sums) {
  cpu::MeanSquaredError(outputs.rows(), outputs.columns(), In(outputs), In(targets), gradient_scale, Out(doutputs),
                        sums.data<double>());
  return absl::OkStatus();
}

absl::Status CpuOperations::ApplyUpdate(const UpdateRule& rule, const DeviceTensor& gradient,
                                        const DeviceTensor& weights, const DeviceTensor& first_slot,
                                        const DeviceTensor& second_slot) {
  const int64_t n = weights.elements();
  const ByteSpan piece = BytesOf(In(gradient), n);
  const EncodedGradient alone = {.pieces = {&piece, 1}};
  float* const slots[] = {Out(first_slot), Out(second_slot)};
  ReduceAndApply(rule, &alone, 1, Out(weights), Out(weights), slots, slots, n);
  return absl::OkStatus();
}

absl::Status CpuOperations::Encode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                                   const DeviceTensor& encoded) {
  rubato::Encode(range.codec, In(values) + range.offset, range.count, Out(residual), range.seed, range.stream,
                 encoded.data<uint8_t>());
  return absl::OkStatus();
}

}  // namespace rubato
