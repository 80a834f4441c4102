#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "common/proto_enum.h"
#include "common/status.h"
#include "kernels/check_arguments.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/encode.h"
#include "kernels/cuda/format.h"
#include "kernels/cuda/loss.h"
#include "kernels/cuda/normalization.h"
#include "kernels/cuda/pool2d.h"
#include "kernels/cuda/reduction.h"
#include "kernels/cuda/update.h"

namespace rubato::cuda {
namespace {

LayerNormShape LayerNormShapeOf(const DeviceTensor& x) {
  return {.type = x.type(), .rows = x.rows(), .columns = x.columns()};
}

GroupNormShape GroupNormShapeOf(int64_t groups, const DeviceTensor& x) {
  const int64_t channels = x.shape()[1];
  return {.type = x.type(),
          .batch = x.rows(),
          .channels = channels,
          .groups = groups,
          .inner = channels == 0 ? 0 : x.columns() / channels};
}

}  // namespace

absl::Status CudaBackend::Fill(float value, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("Fill", "y", y));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({}, {&y}));
  return cuda::Fill(work.stream(), y.type(), value, y.elements(), OutBytes(y));
}

absl::Status CudaBackend::Copy(const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckCopy(x, y));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  if (x.type() != y.type()) {
    return Convert(work.stream(), x.type(), InBytes(x), x.elements(), y.type(), OutBytes(y));
  }
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(OutBytes(y), InBytes(x),
                                              static_cast<size_t>(x.elements() * ElementBytes(x.type())),
                                              cudaMemcpyDeviceToDevice, work.stream()));
  return absl::OkStatus();
}

absl::Status CudaBackend::Add(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckSame("Add", "b", b, "a", a));
  RUBATO_RETURN_IF_ERROR(CheckSame("Add", "y", y, "a", a));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&a, &b}, {&y}));
  return cuda::Add(work.stream(), a.type(), InBytes(a), InBytes(b), a.elements(), OutBytes(y));
}

absl::Status CudaBackend::Axpy(float alpha, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckSame("Axpy", "y", y, "x", x));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::Axpy(work.stream(), x.type(), alpha, InBytes(x), x.elements(), OutBytes(y));
}

absl::Status CudaBackend::Scale(float factor, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("Scale", "y", y));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({}, {&y}));
  return cuda::Scale(work.stream(), y.type(), factor, y.elements(), OutBytes(y));
}

absl::Status CudaBackend::SumOfSquares(const DeviceTensor& x, bool accumulate, const DeviceTensor& sum) {
  RUBATO_RETURN_IF_ERROR(CheckFloat("SumOfSquares", "x", x));
  RUBATO_RETURN_IF_ERROR(CheckSum("SumOfSquares", "sum", sum));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&sum}));
  return cuda::SumOfSquares(work, In(x), x.elements(), accumulate, sum.data<double>());
}

absl::Status CudaBackend::ScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckScaleToNorm(max_norm, sum_of_squares, y));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&sum_of_squares}, {&y}));
  return cuda::ScaleToNorm(work.stream(), max_norm, sum_of_squares.data<const double>(), y.elements(), Out(y));
}

absl::Status CudaBackend::AddBias(const DeviceTensor& bias, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckBias("AddBias", bias, y));
  if (y.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&bias}, {&y}));
  const int64_t channels = bias.elements();
  return cuda::AddBias(work.stream(), y.type(), In(bias), y.rows(), channels, y.columns() / channels, OutBytes(y));
}

absl::Status CudaBackend::BiasGradient(const DeviceTensor& dy, bool accumulate, const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckBias("BiasGradient", dbias, dy));
  const int64_t channels = dbias.elements();
  if (channels == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&dy}, {&dbias}));
  return cuda::BiasGradient(work, dy.type(), InBytes(dy), dy.rows(), channels, dy.columns() / channels, accumulate,
                            Out(dbias));
}

absl::Status CudaBackend::MaxPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                                    const DeviceTensor& argmax) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, x, y, &argmax));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y, &argmax}));
  return cuda::MaxPool2d(work.stream(), x.type(), geometry, x.rows(), InBytes(x), OutBytes(y), argmax.data<int32_t>());
}

absl::Status CudaBackend::MaxPool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                            const DeviceTensor& argmax, const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, dx, dy, &argmax));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&dy, &argmax}, {&dx}));
  return cuda::MaxPool2dBackward(work.stream(), dx.type(), geometry, dx.rows(), InBytes(dy),
                                 argmax.data<const int32_t>(), OutBytes(dx));
}

absl::Status CudaBackend::AveragePool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, x, y, nullptr));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::AveragePool2d(work.stream(), x.type(), geometry, x.rows(), InBytes(x), OutBytes(y));
}

absl::Status CudaBackend::AveragePool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                                const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, dx, dy, nullptr));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&dy}, {&dx}));
  return cuda::AveragePool2dBackward(work.stream(), dx.type(), geometry, dx.rows(), InBytes(dy), OutBytes(dx));
}

absl::Status CudaBackend::Activate(Activation activation, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckSame("Activate", "y", y, "x", x));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::Activate(work.stream(), x.type(), activation, InBytes(x), x.elements(), OutBytes(y));
}

absl::Status CudaBackend::ActivateBackward(Activation activation, const DeviceTensor& x, const DeviceTensor& y,
                                           const DeviceTensor& dy, const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckSame("ActivateBackward", "y", y, "x", x));
  RUBATO_RETURN_IF_ERROR(CheckSame("ActivateBackward", "dy", dy, "x", x));
  RUBATO_RETURN_IF_ERROR(CheckSame("ActivateBackward", "dx", dx, "x", x));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &y, &dy}, {&dx}));
  return cuda::ActivateBackward(work.stream(), x.type(), activation, InBytes(x), InBytes(y), InBytes(dy), x.elements(),
                                OutBytes(dx));
}

absl::Status CudaBackend::Dropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckDropout(mask, x, y));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::Dropout(work.stream(), x.type(), mask, InBytes(x), x.elements(), OutBytes(y));
}

absl::Status CudaBackend::LayerNorm(float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                                    const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                                    const DeviceTensor& inverse_deviation) {
  RUBATO_RETURN_IF_ERROR(CheckLayerNorm(x, gain, bias, y, mean, inverse_deviation));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &gain, &bias}, {&y, &mean, &inverse_deviation}));
  return cuda::LayerNorm(work.stream(), LayerNormShapeOf(x),
                         {.epsilon = epsilon,
                          .x = InBytes(x),
                          .gain = In(gain),
                          .bias = In(bias),
                          .y = OutBytes(y),
                          .mean = Out(mean),
                          .inverse_deviation = Out(inverse_deviation)});
}

absl::Status CudaBackend::LayerNormBackward(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& mean,
                                            const DeviceTensor& inverse_deviation, const DeviceTensor& dy,
                                            bool accumulate, bool add_to_dx, const DeviceTensor& dx,
                                            const DeviceTensor& dgain, const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckLayerNorm(x, gain, dbias, dy, mean, inverse_deviation));
  RUBATO_RETURN_IF_ERROR(CheckSame("LayerNormBackward", "dgain", dgain, "dbias", dbias));
  if (!dx.empty()) RUBATO_RETURN_IF_ERROR(CheckSame("LayerNormBackward", "dx", dx, "x", x));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &gain, &mean, &inverse_deviation, &dy}, {&dx, &dgain, &dbias}));
  return cuda::LayerNormBackward(work, LayerNormShapeOf(x),
                                 {.x = InBytes(x),
                                  .gain = In(gain),
                                  .mean = In(mean),
                                  .inverse_deviation = In(inverse_deviation),
                                  .dy = InBytes(dy),
                                  .accumulate = accumulate,
                                  .dx = OutBytes(dx),
                                  .dgain = Out(dgain),
                                  .dbias = Out(dbias)},
                                 add_to_dx);
}

absl::Status CudaBackend::GroupNorm(int64_t groups, float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                                    const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                                    const DeviceTensor& inverse_deviation) {
  RUBATO_RETURN_IF_ERROR(CheckGroupNorm(groups, x, gain, bias, y, mean, inverse_deviation));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &gain, &bias}, {&y, &mean, &inverse_deviation}));
  return cuda::GroupNorm(work.stream(), GroupNormShapeOf(groups, x),
                         {.epsilon = epsilon,
                          .x = InBytes(x),
                          .gain = In(gain),
                          .bias = In(bias),
                          .y = OutBytes(y),
                          .mean = Out(mean),
                          .inverse_deviation = Out(inverse_deviation)});
}

absl::Status CudaBackend::GroupNormBackward(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain,
                                            const DeviceTensor& mean, const DeviceTensor& inverse_deviation,
                                            const DeviceTensor& dy, bool accumulate, const DeviceTensor& dx,
                                            const DeviceTensor& dgain, const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckGroupNorm(groups, x, gain, dbias, dy, mean, inverse_deviation));
  RUBATO_RETURN_IF_ERROR(CheckSame("GroupNormBackward", "dgain", dgain, "dbias", dbias));
  if (!dx.empty()) RUBATO_RETURN_IF_ERROR(CheckSame("GroupNormBackward", "dx", dx, "x", x));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &gain, &mean, &inverse_deviation, &dy}, {&dx, &dgain, &dbias}));
  return cuda::GroupNormBackward(work, GroupNormShapeOf(groups, x),
                                 {.x = InBytes(x),
                                  .gain = In(gain),
                                  .mean = In(mean),
                                  .inverse_deviation = In(inverse_deviation),
                                  .dy = InBytes(dy),
                                  .accumulate = accumulate,
                                  .dx = OutBytes(dx),
                                  .dgain = Out(dgain),
                                  .dbias = Out(dbias)});
}

absl::Status CudaBackend::SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes,
                                              float gradient_scale, const DeviceTensor& dlogits,
                                              const DeviceTensor& sums) {
  RUBATO_RETURN_IF_ERROR(CheckLoss("SoftmaxCrossEntropy", logits, dlogits, sums));
  RUBATO_RETURN_IF_ERROR(CheckTensor("SoftmaxCrossEntropy", "classes", classes, {logits.rows()}, ElementType::kInt32));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&logits, &classes}, {&dlogits, &sums}));
  return cuda::SoftmaxCrossEntropy(work, logits.rows(), logits.columns(), In(logits), classes.data<const int32_t>(),
                                   gradient_scale, Out(dlogits), sums.data<double>());
}

absl::Status CudaBackend::MeanSquaredError(const DeviceTensor& outputs, const DeviceTensor& targets,
                                           float gradient_scale, const DeviceTensor& doutputs,
                                           const DeviceTensor& sums) {
  RUBATO_RETURN_IF_ERROR(CheckLoss("MeanSquaredError", outputs, doutputs, sums));
  RUBATO_RETURN_IF_ERROR(CheckSame("MeanSquaredError", "targets", targets, "outputs", outputs));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&outputs, &targets}, {&doutputs, &sums}));
  return cuda::MeanSquaredError(work, outputs.rows(), outputs.columns(), In(outputs), In(targets), gradient_scale,
                                Out(doutputs), sums.data<double>());
}

absl::Status CudaBackend::ApplyUpdate(const UpdateRule& rule, const DeviceTensor& gradient, const DeviceTensor& weights,
                                      const DeviceTensor& first_slot, const DeviceTensor& second_slot) {
  RUBATO_RETURN_IF_ERROR(CheckUpdate(rule, gradient, weights, first_slot, second_slot));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&gradient}, {&weights, &first_slot, &second_slot}));
  float* const slots[] = {Out(first_slot), Out(second_slot)};
  return cuda::ApplyUpdate(work.stream(), rule, In(gradient), weights.elements(), Out(weights), slots);
}

absl::Status CudaBackend::Encode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                                 const DeviceTensor& message) {
  RUBATO_RETURN_IF_ERROR(CheckEncode(range, values, residual, message));
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&values, &residual}, {&residual, &message}));
  const float* from = In(values) + range.offset;
  auto* out = message.data<uint8_t>();
  switch (range.codec.codec) {
    case v1::BF16:
      return EncodeBf16(work.stream(), from, range.count, out);
    case v1::FP16:
      return EncodeFp16(work.stream(), from, range.count, out);
    case v1::INT8:
      return EncodeInt8(work.stream(), from, range.count, range.seed, range.stream, out);
    case v1::ONE_BIT:
      return EncodeOneBit(work.stream(), from, range.count, Out(residual), out);
    case v1::TOP_K:
      return EncodeTopK(work, from, range.count, TopKCount(range.codec.fraction, range.count), Out(residual), out);
    case v1::NONE:
    case v1::CODEC_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Codec) : break;
  }
  return absl::InternalError(absl::StrCat("Encode: no kernel for ", v1::Codec_Name(range.codec.codec)));
}

}  // namespace rubato::cuda
