#include "kernels/backend.h"

#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/check_arguments.h"
#include "kernels/operations.h"

namespace rubato {

template <typename... Parameters, typename... Arguments>
absl::Status Backend::Compute(absl::Status (Operations::*operation)(Parameters...), const Arguments&... arguments) {
  if (Operations* const device = operations(); device != nullptr) return (device->*operation)(arguments...);
  return Defer([=](Operations& device) { return (device.*operation)(arguments...); });
}

absl::StatusOr<DeviceTensor> Backend::Allocate(Shape shape, ElementType type) {
  RUBATO_ASSIGN_OR_RETURN(const int64_t bytes, CheckedBytes(shape, type, ActivationType()));
  return DoAllocate(std::move(shape), type, bytes);
}

absl::StatusOr<DeviceTensor> Backend::AllocateForSending(Shape shape) {
  RUBATO_ASSIGN_OR_RETURN(const int64_t bytes, CheckedBytes(shape, ElementType::kFloat32, ActivationType()));
  return DoAllocateForSending(std::move(shape), bytes);
}

absl::Status Backend::CopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) {
  RUBATO_RETURN_IF_ERROR(CheckRange("CopyToDevice", to, offset, count));
  return count == 0 ? absl::OkStatus() : DoCopyToDevice(to, offset, count, from);
}

absl::Status Backend::CopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) {
  RUBATO_RETURN_IF_ERROR(CheckRange("CopyToHost", from, offset, count));
  return count == 0 ? absl::OkStatus() : DoCopyToHost(from, offset, count, to);
}

absl::Status Backend::CopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) {
  if (const Backend& other = *peer; typeid(other) != typeid(*this)) {
    return absl::InvalidArgumentError(absl::StrCat("CopyFromPeer: ", peer->Name(), " is no peer of ", Name()));
  }
  RUBATO_RETURN_IF_ERROR(CheckSame("CopyFromPeer", "y", y, "x", x));
  return y.elements() == 0 ? absl::OkStatus() : DoCopyFromPeer(peer, x, y);
}

absl::Status Backend::Fill(float value, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("Fill", "y", y));
  return Compute(&Operations::Fill, value, y);
}

absl::Status Backend::Copy(const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckCopy(x, y));
  return Compute(&Operations::Copy, x, y);
}

absl::Status Backend::Add(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckSame("Add", "b", b, "a", a));
  RUBATO_RETURN_IF_ERROR(CheckSame("Add", "y", y, "a", a));
  return Compute(&Operations::Add, a, b, y);
}

absl::Status Backend::Multiply(const DeviceTensor& a, const DeviceTensor& b, bool accumulate, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckSame("Multiply", "b", b, "a", a));
  RUBATO_RETURN_IF_ERROR(CheckSame("Multiply", "y", y, "a", a));
  return Compute(&Operations::Multiply, a, b, accumulate, y);
}

absl::Status Backend::CopyColumns(const ColumnRange& range, bool accumulate, const DeviceTensor& x,
                                  const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckColumns(range, x, y));
  return Compute(&Operations::CopyColumns, range, accumulate, x, y);
}

absl::Status Backend::Axpy(float alpha, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckSame("Axpy", "y", y, "x", x));
  return Compute(&Operations::Axpy, alpha, x, y);
}

absl::Status Backend::Scale(float factor, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("Scale", "y", y));
  return Compute(&Operations::Scale, factor, y);
}

absl::Status Backend::SumOfSquares(const DeviceTensor& x, bool accumulate, const DeviceTensor& sum) {
  RUBATO_RETURN_IF_ERROR(CheckFloat("SumOfSquares", "x", x));
  RUBATO_RETURN_IF_ERROR(CheckSum("SumOfSquares", "sum", sum));
  return Compute(&Operations::SumOfSquares, x, accumulate, sum);
}

absl::Status Backend::ScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckScaleToNorm(max_norm, sum_of_squares, y));
  return Compute(&Operations::ScaleToNorm, max_norm, sum_of_squares, y);
}

absl::Status Backend::Gemm(bool transpose_a, bool transpose_b, float alpha, const DeviceTensor& a,
                           const DeviceTensor& b, float beta, const DeviceTensor& c) {
  RUBATO_RETURN_IF_ERROR(CheckGemm(ActivationType(), transpose_a, transpose_b, a, b, c));
  return Compute(&Operations::Gemm, transpose_a, transpose_b, alpha, a, b, beta, c);
}

absl::Status Backend::Linear(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& bias,
                             const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckLinear(ActivationType(), "Linear", x, weight, bias, y));
  return y.elements() == 0 ? absl::OkStatus() : Compute(&Operations::Linear, x, weight, bias, y);
}

absl::Status Backend::LinearBackward(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& dy,
                                     bool accumulate, const DeviceTensor& dx, const DeviceTensor& dweight,
                                     const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckLinearBackward(ActivationType(), x, weight, dy, dx, dweight, dbias));
  if (x.rows() > 0) return Compute(&Operations::LinearBackward, x, weight, dy, accumulate, dx, dweight, dbias);
  if (accumulate) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(Fill(0, dweight));
  return dbias.empty() ? absl::OkStatus() : Fill(0, dbias);
}

absl::Status Backend::LinearUnits(const UnitRange& units, const DeviceTensor& x, const DeviceTensor& weight,
                                  const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckLinear(ActivationType(), "LinearUnits", x, weight, DeviceTensor(), y));
  RUBATO_RETURN_IF_ERROR(CheckUnits("LinearUnits", units, x, weight));
  return units.size() == 0 ? absl::OkStatus() : Compute(&Operations::LinearUnits, units, x, weight, y);
}

absl::Status Backend::LinearUnitsGradient(const UnitRange& units, const DeviceTensor& x, const DeviceTensor& dy,
                                          bool accumulate, const DeviceTensor& dweight) {
  RUBATO_RETURN_IF_ERROR(CheckLinearUnitsGradient(ActivationType(), units, x, dy, dweight));
  if (units.size() == 0) return absl::OkStatus();
  return Compute(&Operations::LinearUnitsGradient, units, x, dy, accumulate, dweight);
}

absl::Status Backend::AddBias(const DeviceTensor& bias, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckBias("AddBias", bias, y));
  return Compute(&Operations::AddBias, bias, y);
}

absl::Status Backend::BiasGradient(const DeviceTensor& dy, bool accumulate, const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckBias("BiasGradient", dbias, dy));
  return Compute(&Operations::BiasGradient, dy, accumulate, dbias);
}

absl::Status Backend::Conv2d(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& weight,
                             const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckConv2d(ActivationType(), ActivationType(), geometry, x, weight, y));
  return Compute(&Operations::Conv2d, geometry, x, weight, y);
}

absl::Status Backend::Conv2dBackwardData(const Conv2dGeometry& geometry, const DeviceTensor& dy,
                                         const DeviceTensor& weight, const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckConv2d(ActivationType(), ActivationType(), geometry, dx, weight, dy));
  return Compute(&Operations::Conv2dBackwardData, geometry, dy, weight, dx);
}

absl::Status Backend::Conv2dBackwardWeight(const Conv2dGeometry& geometry, const DeviceTensor& x,
                                           const DeviceTensor& dy, bool accumulate, const DeviceTensor& dweight) {
  RUBATO_RETURN_IF_ERROR(CheckConv2d(ActivationType(), ElementType::kFloat32, geometry, x, dweight, dy));
  return Compute(&Operations::Conv2dBackwardWeight, geometry, x, dy, accumulate, dweight);
}

absl::Status Backend::MaxPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                                const DeviceTensor& argmax) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, x, y, &argmax));
  return Compute(&Operations::MaxPool2d, geometry, x, y, argmax);
}

absl::Status Backend::MaxPool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                        const DeviceTensor& argmax, const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, dx, dy, &argmax));
  return Compute(&Operations::MaxPool2dBackward, geometry, dy, argmax, dx);
}

absl::Status Backend::AveragePool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, x, y, nullptr));
  return Compute(&Operations::AveragePool2d, geometry, x, y);
}

absl::Status Backend::AveragePool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                            const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, dx, dy, nullptr));
  return Compute(&Operations::AveragePool2dBackward, geometry, dy, dx);
}

absl::Status Backend::Activate(Activation activation, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckSame("Activate", "y", y, "x", x));
  return Compute(&Operations::Activate, activation, x, y);
}

absl::Status Backend::ActivateBackward(Activation activation, const DeviceTensor& x, const DeviceTensor& y,
                                       const DeviceTensor& dy, const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckSame("ActivateBackward", "y", y, "x", x));
  RUBATO_RETURN_IF_ERROR(CheckSame("ActivateBackward", "dy", dy, "x", x));
  RUBATO_RETURN_IF_ERROR(CheckSame("ActivateBackward", "dx", dx, "x", x));
  return Compute(&Operations::ActivateBackward, activation, x, y, dy, dx);
}

absl::Status Backend::Dropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckDropout(mask, x, y));
  return Compute(&Operations::Dropout, mask, x, y);
}

absl::Status Backend::LayerNorm(float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                                const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                                const DeviceTensor& inverse_deviation) {
  RUBATO_RETURN_IF_ERROR(CheckLayerNorm(x, gain, bias, y, mean, inverse_deviation));
  return Compute(&Operations::LayerNorm, epsilon, x, gain, bias, y, mean, inverse_deviation);
}

absl::Status Backend::LayerNormBackward(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& mean,
                                        const DeviceTensor& inverse_deviation, const DeviceTensor& dy, bool accumulate,
                                        bool add_to_dx, const DeviceTensor& dx, const DeviceTensor& dgain,
                                        const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckLayerNorm(x, gain, dbias, dy, mean, inverse_deviation));
  RUBATO_RETURN_IF_ERROR(CheckNormBackward("LayerNormBackward", x, dx, dgain, dbias));
  return Compute(&Operations::LayerNormBackward, x, gain, mean, inverse_deviation, dy, accumulate, add_to_dx, dx, dgain,
                 dbias);
}

absl::Status Backend::GroupNorm(int64_t groups, float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                                const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                                const DeviceTensor& inverse_deviation) {
  RUBATO_RETURN_IF_ERROR(CheckGroupNorm(groups, x, gain, bias, y, mean, inverse_deviation));
  return Compute(&Operations::GroupNorm, groups, epsilon, x, gain, bias, y, mean, inverse_deviation);
}

absl::Status Backend::GroupNormBackward(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain,
                                        const DeviceTensor& mean, const DeviceTensor& inverse_deviation,
                                        const DeviceTensor& dy, bool accumulate, const DeviceTensor& dx,
                                        const DeviceTensor& dgain, const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckGroupNorm(groups, x, gain, dbias, dy, mean, inverse_deviation));
  RUBATO_RETURN_IF_ERROR(CheckNormBackward("GroupNormBackward", x, dx, dgain, dbias));
  return Compute(&Operations::GroupNormBackward, groups, x, gain, mean, inverse_deviation, dy, accumulate, dx, dgain,
                 dbias);
}

absl::Status Backend::DotInteraction(int64_t width, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckInteraction("DotInteraction", width, true, x, y));
  return Compute(&Operations::DotInteraction, width, x, y);
}

absl::Status Backend::DotInteractionBackward(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,
                                             const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckInteraction("DotInteractionBackward", width, true, x, dy));
  RUBATO_RETURN_IF_ERROR(CheckSame("DotInteractionBackward", "dx", dx, "x", x));
  return Compute(&Operations::DotInteractionBackward, width, x, dy, dx);
}

absl::Status Backend::FactorizationMachine(int64_t width, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckInteraction("FactorizationMachine", width, false, x, y));
  return Compute(&Operations::FactorizationMachine, width, x, y);
}

absl::Status Backend::FactorizationMachineBackward(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,
                                                   const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckInteraction("FactorizationMachineBackward", width, false, x, dy));
  RUBATO_RETURN_IF_ERROR(CheckSame("FactorizationMachineBackward", "dx", dx, "x", x));
  return Compute(&Operations::FactorizationMachineBackward, width, x, dy, dx);
}

absl::Status Backend::Embed(const DeviceTensor& table, const DeviceTensor& indices, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckEmbed("Embed", table, indices, y));
  return Compute(&Operations::Embed, table, indices, y);
}

absl::Status Backend::EmbedBackward(const DeviceTensor& indices, const DeviceTensor& dy, bool accumulate,
                                    const DeviceTensor& dtable) {
  RUBATO_RETURN_IF_ERROR(CheckEmbed("EmbedBackward", dtable, indices, dy));
  return Compute(&Operations::EmbedBackward, indices, dy, accumulate, dtable);
}

absl::Status Backend::CausalAttention(const AttentionGeometry& geometry, const DeviceTensor& qkv, const DeviceTensor& y,
                                      const DeviceTensor& log_sum_exp) {
  RUBATO_RETURN_IF_ERROR(CheckAttention(ActivationType(), geometry, qkv, y, log_sum_exp));
  return Compute(&Operations::CausalAttention, geometry, qkv, y, log_sum_exp);
}

absl::Status Backend::CausalAttentionBackward(const AttentionGeometry& geometry, const DeviceTensor& qkv,
                                              const DeviceTensor& y, const DeviceTensor& log_sum_exp,
                                              const DeviceTensor& dy, const DeviceTensor& dqkv) {
  RUBATO_RETURN_IF_ERROR(CheckAttention(ActivationType(), geometry, qkv, y, log_sum_exp));
  RUBATO_RETURN_IF_ERROR(CheckSame("CausalAttentionBackward", "dy", dy, "y", y));
  RUBATO_RETURN_IF_ERROR(CheckSame("CausalAttentionBackward", "dqkv", dqkv, "qkv", qkv));
  return Compute(&Operations::CausalAttentionBackward, geometry, qkv, y, log_sum_exp, dy, dqkv);
}

absl::Status Backend::SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes, float gradient_scale,
                                          const DeviceTensor& dlogits, const DeviceTensor& sums) {
  RUBATO_RETURN_IF_ERROR(CheckLoss("SoftmaxCrossEntropy", logits, dlogits, sums));
  RUBATO_RETURN_IF_ERROR(CheckTensor("SoftmaxCrossEntropy", "classes", classes, {logits.rows()}, ElementType::kInt32));
  return Compute(&Operations::SoftmaxCrossEntropy, logits, classes, gradient_scale, dlogits, sums);
}

absl::Status Backend::BinaryCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes, float gradient_scale,
                                         const DeviceTensor& dlogits, const DeviceTensor& sums) {
  RUBATO_RETURN_IF_ERROR(CheckLoss("BinaryCrossEntropy", logits, dlogits, sums));
  RUBATO_RETURN_IF_ERROR(CheckTensor("BinaryCrossEntropy", "logits", logits, {logits.rows(), 1}));
  RUBATO_RETURN_IF_ERROR(CheckTensor("BinaryCrossEntropy", "classes", classes, {logits.rows()}, ElementType::kInt32));
  return Compute(&Operations::BinaryCrossEntropy, logits, classes, gradient_scale, dlogits, sums);
}

absl::Status Backend::MeanSquaredError(const DeviceTensor& outputs, const DeviceTensor& targets, float gradient_scale,
                                       const DeviceTensor& doutputs, const DeviceTensor& sums) {
  RUBATO_RETURN_IF_ERROR(CheckLoss("MeanSquaredError", outputs, doutputs, sums));
  RUBATO_RETURN_IF_ERROR(CheckSame("MeanSquaredError", "targets", targets, "outputs", outputs));
  return Compute(&Operations::MeanSquaredError, outputs, targets, gradient_scale, doutputs, sums);
}

absl::Status Backend::ApplyUpdate(const UpdateRule& rule, const DeviceTensor& gradient, const DeviceTensor& weights,
                                  const DeviceTensor& first_slot, const DeviceTensor& second_slot) {
  RUBATO_RETURN_IF_ERROR(CheckUpdate(rule, gradient, weights, first_slot, second_slot));
  return Compute(&Operations::ApplyUpdate, rule, gradient, weights, first_slot, second_slot);
}

absl::Status Backend::Encode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                             const DeviceTensor& encoded) {
  RUBATO_RETURN_IF_ERROR(CheckEncode(range, values, residual, encoded));
  return Compute(&Operations::Encode, range, values, residual, encoded);
}

}  // namespace rubato
