#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "common/proto_enum.h"
#include "common/status.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_operations.h"
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
  return {.type = x.type(), .batch = x.rows(), .channels = x.shape()[1], .groups = groups, .inner = ChannelElements(x)};
}

ElementType TypeFor(MatrixPrecision precision) {
  switch (precision) {
    case MatrixPrecision::kFloat32:
    case MatrixPrecision::kTf32:
      return ElementType::kFloat32;
    case MatrixPrecision::kBf16:
      return ElementType::kBfloat16;
    case MatrixPrecision::kFp16:
      return ElementType::kFloat16;
  }
  return ElementType::kFloat32;
}

// What libraries load when they are first used, and graphs.
constexpr int64_t kLoadedBytes = int64_t{512} << 20;

WorkspaceRules WorkspaceFor(const CudaBackendOptions& options, ElementType type, int64_t cudnn_bytes) {
  return {.activation_type = type,
          .fixed_bytes = Cublas::kWorkspaceBytes + CublasLt::kWorkspaceBytes + cudnn_bytes + kLoadedBytes,
          .gathered_bytes = ElementBytes(type),
          .im2col_elements = options.workspace_elements,
          .score_elements = options.workspace_elements,
          .fused_attention = options.fused_attention && type != ElementType::kFloat32,
          // EncodeTopK: keys and indices, before and after they are sorted, and as much again for the sort.
          .top_k_bytes = 24};
}

}  // namespace

CudaOperations::CudaOperations(const CudaBackendOptions& options, DeviceContext* context)
    : context_(context),
      type_(TypeFor(options.precision)),
      workspace_(WorkspaceFor(options, type_, options.cudnn ? kCudnnBytes : 0)) {}

absl::StatusOr<std::unique_ptr<CudaOperations>> CudaOperations::Create(const CudaBackendOptions& options,
                                                                       DeviceContext* context) {
  std::unique_ptr<CudaOperations> operations(new CudaOperations(options, context));
  const Stream stream = context->streams()->stream(kCompute);
  RUBATO_ASSIGN_OR_RETURN(operations->cublas_, Cublas::Create(stream, context->pool(), options.precision));
  RUBATO_ASSIGN_OR_RETURN(operations->cublas_lt_, CublasLt::Create(options.precision));
  if (!options.cudnn) return operations;
  absl::StatusOr<std::unique_ptr<Cudnn>> cudnn = Cudnn::Create(stream, options.precision);
  if (!cudnn.ok() && !absl::IsFailedPrecondition(cudnn.status())) return cudnn.status();
  if (cudnn.ok()) operations->cudnn_ = *std::move(cudnn);
  return operations;
}

std::string CudaOperations::Libraries() const { return cudnn_ == nullptr ? "" : cudnn_->Name(); }

absl::Status CudaOperations::Fill(float value, const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({}, {&y}));
  return cuda::Fill(work.stream(), y.type(), value, y.elements(), OutBytes(y));
}

absl::Status CudaOperations::Copy(const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  if (x.type() != y.type()) {
    return Convert(work.stream(), x.type(), InBytes(x), x.elements(), y.type(), OutBytes(y));
  }
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(OutBytes(y), InBytes(x),
                                              static_cast<size_t>(x.elements() * ElementBytes(x.type())),
                                              cudaMemcpyDeviceToDevice, work.stream()));
  return absl::OkStatus();
}

absl::Status CudaOperations::Add(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&a, &b}, {&y}));
  return cuda::Add(work.stream(), a.type(), InBytes(a), InBytes(b), a.elements(), OutBytes(y));
}

absl::Status CudaOperations::Multiply(const DeviceTensor& a, const DeviceTensor& b, bool accumulate,
                                      const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&a, &b}, {&y}));
  return cuda::Multiply(work.stream(), a.type(), InBytes(a), InBytes(b), a.elements(), accumulate, OutBytes(y));
}

absl::Status CudaOperations::Axpy(float alpha, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::Axpy(work.stream(), x.type(), alpha, InBytes(x), x.elements(), OutBytes(y));
}

absl::Status CudaOperations::Scale(float factor, const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({}, {&y}));
  return cuda::Scale(work.stream(), y.type(), factor, y.elements(), OutBytes(y));
}

absl::Status CudaOperations::SumOfSquares(const DeviceTensor& x, bool accumulate, const DeviceTensor& sum) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&sum}));
  return cuda::SumOfSquares(work, In(x), x.elements(), accumulate, sum.data<double>());
}

absl::Status CudaOperations::ScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&sum_of_squares}, {&y}));
  return cuda::ScaleToNorm(work.stream(), max_norm, sum_of_squares.data<const double>(), y.elements(), Out(y));
}

absl::Status CudaOperations::AddBias(const DeviceTensor& bias, const DeviceTensor& y) {
  if (y.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&bias}, {&y}));
  return cuda::AddBias(work.stream(), y.type(), In(bias), y.rows(), bias.elements(), ChannelElements(y), OutBytes(y));
}

absl::Status CudaOperations::BiasGradient(const DeviceTensor& dy, bool accumulate, const DeviceTensor& dbias) {
  if (dbias.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&dy}, {&dbias}));
  return cuda::BiasGradient(work, dy.type(), InBytes(dy), dy.rows(), dbias.elements(), ChannelElements(dy), accumulate,
                            Out(dbias));
}

absl::Status CudaOperations::MaxPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                                       const DeviceTensor& argmax) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y, &argmax}));
  return cuda::MaxPool2d(work.stream(), x.type(), geometry, x.rows(), InBytes(x), OutBytes(y), argmax.data<int32_t>());
}

absl::Status CudaOperations::MaxPool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                               const DeviceTensor& argmax, const DeviceTensor& dx) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&dy, &argmax}, {&dx}));
  return cuda::MaxPool2dBackward(work.stream(), dx.type(), geometry, dx.rows(), InBytes(dy),
                                 argmax.data<const int32_t>(), OutBytes(dx));
}

absl::Status CudaOperations::AveragePool2d(const Pool2dGeometry& geometry, const DeviceTensor& x,
                                           const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::AveragePool2d(work.stream(), x.type(), geometry, x.rows(), InBytes(x), OutBytes(y));
}

absl::Status CudaOperations::AveragePool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                                   const DeviceTensor& dx) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&dy}, {&dx}));
  return cuda::AveragePool2dBackward(work.stream(), dx.type(), geometry, dx.rows(), InBytes(dy), OutBytes(dx));
}

absl::Status CudaOperations::Activate(Activation activation, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::Activate(work.stream(), x.type(), activation, InBytes(x), x.elements(), OutBytes(y));
}

absl::Status CudaOperations::ActivateBackward(Activation activation, const DeviceTensor& x, const DeviceTensor& y,
                                              const DeviceTensor& dy, const DeviceTensor& dx) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &y, &dy}, {&dx}));
  return cuda::ActivateBackward(work.stream(), x.type(), activation, InBytes(x), InBytes(y), InBytes(dy), x.elements(),
                                OutBytes(dx));
}

absl::Status CudaOperations::Dropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::Dropout(work.stream(), x.type(), mask, InBytes(x), x.elements(), OutBytes(y));
}

absl::Status CudaOperations::LayerNorm(float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                                       const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                                       const DeviceTensor& inverse_deviation) {
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

absl::Status CudaOperations::LayerNormBackward(const DeviceTensor& x, const DeviceTensor& gain,
                                               const DeviceTensor& mean, const DeviceTensor& inverse_deviation,
                                               const DeviceTensor& dy, bool accumulate, bool add_to_dx,
                                               const DeviceTensor& dx, const DeviceTensor& dgain,
                                               const DeviceTensor& dbias) {
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

absl::Status CudaOperations::GroupNorm(int64_t groups, float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                                       const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                                       const DeviceTensor& inverse_deviation) {
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

absl::Status CudaOperations::GroupNormBackward(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain,
                                               const DeviceTensor& mean, const DeviceTensor& inverse_deviation,
                                               const DeviceTensor& dy, bool accumulate, const DeviceTensor& dx,
                                               const DeviceTensor& dgain, const DeviceTensor& dbias) {
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

absl::Status CudaOperations::SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes,
                                                 float gradient_scale, const DeviceTensor& dlogits,
                                                 const DeviceTensor& sums) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&logits, &classes}, {&dlogits, &sums}));
  return cuda::SoftmaxCrossEntropy(work, logits.rows(), logits.columns(), In(logits), classes.data<const int32_t>(),
                                   gradient_scale, Out(dlogits), sums.data<double>());
}

absl::Status CudaOperations::BinaryCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes,
                                                float gradient_scale, const DeviceTensor& dlogits,
                                                const DeviceTensor& sums) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&logits, &classes}, {&dlogits, &sums}));
  return cuda::BinaryCrossEntropy(work, logits.rows(), In(logits), classes.data<const int32_t>(), gradient_scale,
                                  Out(dlogits), sums.data<double>());
}

absl::Status CudaOperations::MeanSquaredError(const DeviceTensor& outputs, const DeviceTensor& targets,
                                              float gradient_scale, const DeviceTensor& doutputs,
                                              const DeviceTensor& sums) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&outputs, &targets}, {&doutputs, &sums}));
  return cuda::MeanSquaredError(work, outputs.rows(), outputs.columns(), In(outputs), In(targets), gradient_scale,
                                Out(doutputs), sums.data<double>());
}

absl::Status CudaOperations::ApplyUpdate(const UpdateRule& rule, const DeviceTensor& gradient,
                                         const DeviceTensor& weights, const DeviceTensor& first_slot,
                                         const DeviceTensor& second_slot) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&gradient}, {&weights, &first_slot, &second_slot}));
  float* const slots[] = {Out(first_slot), Out(second_slot)};
  return cuda::ApplyUpdate(work.stream(), rule, In(gradient), weights.elements(), Out(weights), slots);
}

absl::Status CudaOperations::Encode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                                    const DeviceTensor& encoded) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&values, &residual}, {&residual, &encoded}));
  const float* from = In(values) + range.offset;
  auto* out = encoded.data<uint8_t>();
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
