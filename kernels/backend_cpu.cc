#include "kernels/backend_cpu.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/available_memory.h"
#include "common/status.h"
#include "kernels/attention_cpu.h"
#include "kernels/check_arguments.h"
#include "kernels/conv2d_cpu.h"
#include "kernels/cpu_buffer.h"
#include "kernels/elementwise_cpu.h"
#include "kernels/embedding_cpu.h"
#include "kernels/group_norm_cpu.h"
#include "kernels/layer_norm_cpu.h"
#include "kernels/loss_cpu.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/pool2d_cpu.h"
#include "kernels/sgemm_cpu.h"

namespace rubato {
namespace {

class CpuEvent : public Event {
 public:
  bool Done() const override { return true; }
  absl::Status Wait() const override { return absl::OkStatus(); }
};

const float* In(const DeviceTensor& tensor) { return tensor.data<const float>(); }
float* Out(const DeviceTensor& tensor) { return tensor.data<float>(); }

cpu::GroupNormSizes NormSizes(int64_t groups, const DeviceTensor& x) {
  const int64_t channels = x.shape()[1];
  return {.batch = x.rows(), .channels = channels, .inner = x.columns() / channels, .groups = groups};
}

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options)
      : threads_(options.compute_threads),
        sending_memory_(options.sending_memory),
        conv_(options.im2col_convolutions ? cpu::NewIm2colConv2d(threads_) : cpu::NewConv2d(threads_)),
        attention_(threads_) {}

  std::string Name() const override { return "cpu"; }

  absl::StatusOr<DeviceTensor> Allocate(Shape shape, ElementType type) override;
  absl::StatusOr<DeviceTensor> AllocateForSending(Shape shape) override;
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t bytes) override;
  absl::StatusOr<std::shared_ptr<void>> AllocateHostForSending(int64_t bytes) override;
  absl::StatusOr<DeviceMemory> Memory() const override;
  absl::Status CopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) override;
  absl::Status CopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) override;
  absl::Status CopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) override;
  float* HostPointer(const DeviceTensor& tensor) const override {
    return tensor.type() == ElementType::kFloat32 ? Out(tensor) : nullptr;
  }
  absl::StatusOr<std::unique_ptr<Event>> Record() override { return std::make_unique<CpuEvent>(); }
  absl::Status Synchronize() override { return absl::OkStatus(); }

  absl::Status Fill(float value, const DeviceTensor& y) override;
  absl::Status Copy(const DeviceTensor& x, const DeviceTensor& y) override;
  absl::Status Add(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y) override;
  absl::Status Axpy(float alpha, const DeviceTensor& x, const DeviceTensor& y) override;
  absl::Status Scale(float factor, const DeviceTensor& y) override;
  absl::Status SumOfSquares(const DeviceTensor& x, bool accumulate, const DeviceTensor& sum) override;
  absl::Status ScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y) override;
  absl::Status Gemm(bool transpose_a, bool transpose_b, float alpha, const DeviceTensor& a, const DeviceTensor& b,
                    float beta, const DeviceTensor& c) override;
  absl::Status Linear(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& bias,
                      const DeviceTensor& y) override;
  absl::Status LinearBackward(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& dy,
                              bool accumulate, const DeviceTensor& dx, const DeviceTensor& dweight,
                              const DeviceTensor& dbias) override;
  absl::Status AddBias(const DeviceTensor& bias, const DeviceTensor& y) override;
  absl::Status BiasGradient(const DeviceTensor& dy, bool accumulate, const DeviceTensor& dbias) override;

  absl::Status Conv2d(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& weight,
                      const DeviceTensor& y) override;
  absl::Status Conv2dBackwardData(const Conv2dGeometry& geometry, const DeviceTensor& dy, const DeviceTensor& weight,
                                  const DeviceTensor& dx) override;
  absl::Status Conv2dBackwardWeight(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& dy,
                                    bool accumulate, const DeviceTensor& dweight) override;
  absl::Status MaxPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                         const DeviceTensor& argmax) override;
  absl::Status MaxPool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy, const DeviceTensor& argmax,
                                 const DeviceTensor& dx) override;
  absl::Status AveragePool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y) override;
  absl::Status AveragePool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                     const DeviceTensor& dx) override;

  absl::Status Activate(Activation activation, const DeviceTensor& x, const DeviceTensor& y) override;
  absl::Status ActivateBackward(Activation activation, const DeviceTensor& x, const DeviceTensor& y,
                                const DeviceTensor& dy, const DeviceTensor& dx) override;
  absl::Status Dropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y) override;
  absl::Status LayerNorm(float epsilon, const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& bias,
                         const DeviceTensor& y, const DeviceTensor& mean,
                         const DeviceTensor& inverse_deviation) override;
  absl::Status LayerNormBackward(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& mean,
                                 const DeviceTensor& inverse_deviation, const DeviceTensor& dy, bool accumulate,
                                 bool add_to_dx, const DeviceTensor& dx, const DeviceTensor& dgain,
                                 const DeviceTensor& dbias) override;

  absl::Status GroupNorm(int64_t groups, float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                         const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                         const DeviceTensor& inverse_deviation) override;
  absl::Status GroupNormBackward(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain,
                                 const DeviceTensor& mean, const DeviceTensor& inverse_deviation,
                                 const DeviceTensor& dy, bool accumulate, const DeviceTensor& dx,
                                 const DeviceTensor& dgain, const DeviceTensor& dbias) override;

  absl::Status Embed(const DeviceTensor& table, const DeviceTensor& indices, const DeviceTensor& y) override;
  absl::Status EmbedBackward(const DeviceTensor& indices, const DeviceTensor& dy, bool accumulate,
                             const DeviceTensor& dtable) override;
  absl::Status CausalAttention(const AttentionGeometry& geometry, const DeviceTensor& qkv, const DeviceTensor& y,
                               const DeviceTensor& log_sum_exp) override;
  absl::Status CausalAttentionBackward(const AttentionGeometry& geometry, const DeviceTensor& qkv,
                                       const DeviceTensor& y, const DeviceTensor& log_sum_exp, const DeviceTensor& dy,
                                       const DeviceTensor& dqkv) override;

  absl::Status SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes, float gradient_scale,
                                   const DeviceTensor& dlogits, const DeviceTensor& sums) override;
  absl::Status MeanSquaredError(const DeviceTensor& outputs, const DeviceTensor& targets, float gradient_scale,
                                const DeviceTensor& doutputs, const DeviceTensor& sums) override;
  absl::Status ApplyUpdate(const UpdateRule& rule, const DeviceTensor& gradient, const DeviceTensor& weights,
                           const DeviceTensor& first_slot, const DeviceTensor& second_slot) override;

  absl::Status Encode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                      const DeviceTensor& message) override;

 private:
  const int threads_;
  const std::function<std::shared_ptr<void>(size_t)> sending_memory_;
  const std::unique_ptr<cpu::Conv2d> conv_;
  cpu::Attention attention_;
};

absl::StatusOr<DeviceTensor> CpuBackend::Allocate(Shape shape, ElementType type) {
  RUBATO_ASSIGN_OR_RETURN(const int64_t bytes, CheckedBytes(shape, type, ActivationType()));
  void* memory = AllocateZeros(bytes);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Allocate: no memory for a tensor of ", ShapeText(shape), ", ", bytes, " bytes"));
  }
  return DeviceTensor(std::make_shared<CpuBuffer>(memory), std::move(shape), type);
}

absl::StatusOr<DeviceTensor> CpuBackend::AllocateForSending(Shape shape) {
  RUBATO_ASSIGN_OR_RETURN(const int64_t bytes, CheckedBytes(shape, ElementType::kFloat32, ActivationType()));
  std::shared_ptr<void> memory;
  if (sending_memory_ && bytes > 0) memory = sending_memory_(bytes);
  if (memory == nullptr) return Allocate(std::move(shape), ElementType::kFloat32);
  return DeviceTensor(std::make_shared<SentBuffer>(std::move(memory)), std::move(shape), ElementType::kFloat32);
}

absl::StatusOr<std::shared_ptr<void>> CpuBackend::AllocateHost(int64_t bytes) {
  void* memory = AllocateZeros(bytes);
  if (memory == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("AllocateHost: no memory for ", bytes, " bytes"));
  return std::shared_ptr<void>(memory, std::free);
}

absl::StatusOr<std::shared_ptr<void>> CpuBackend::AllocateHostForSending(int64_t bytes) {
  std::shared_ptr<void> memory;
  if (sending_memory_ && bytes > 0) memory = sending_memory_(bytes);
  if (memory != nullptr) return memory;
  return AllocateHost(bytes);
}

absl::StatusOr<DeviceMemory> CpuBackend::Memory() const {
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages < 0 || page_bytes < 0) return absl::InternalError("sysconf does not know how much memory there is");
  const int64_t total = pages * page_bytes;
  return DeviceMemory{.total = total, .free = AvailableMemoryBytes().value_or(total)};
}

absl::Status CpuBackend::CopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) {
  RUBATO_RETURN_IF_ERROR(CheckRange("CopyToDevice", to, offset, count));
  const int64_t size = ElementBytes(to.type());
  if (count > 0) std::memcpy(to.data<char>() + offset * size, from, count * size);
  return absl::OkStatus();
}

absl::Status CpuBackend::CopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) {
  RUBATO_RETURN_IF_ERROR(CheckRange("CopyToHost", from, offset, count));
  const int64_t size = ElementBytes(from.type());
  if (count > 0) std::memcpy(to, from.data<const char>() + offset * size, count * size);
  return absl::OkStatus();
}

absl::Status CpuBackend::CopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) {
  if (dynamic_cast<CpuBackend*>(peer) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("CopyFromPeer: ", peer->Name(), " is no peer of ", Name()));
  }
  return Copy(x, y);
}

absl::Status CpuBackend::Fill(float value, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("Fill", "y", y));
  cpu::Fill(value, y.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::Copy(const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckCopy(x, y));
  std::copy_n(In(x), x.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::Add(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckSame("Add", "b", b, "a", a));
  RUBATO_RETURN_IF_ERROR(CheckSame("Add", "y", y, "a", a));
  cpu::Add(In(a), In(b), a.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::Scale(float factor, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("Scale", "y", y));
  cpu::Scale(factor, y.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::SumOfSquares(const DeviceTensor& x, bool accumulate, const DeviceTensor& sum) {
  RUBATO_RETURN_IF_ERROR(CheckFloat("SumOfSquares", "x", x));
  RUBATO_RETURN_IF_ERROR(CheckSum("SumOfSquares", "sum", sum));
  double* total = sum.data<double>();
  *total = cpu::SumOfSquares(In(x), x.elements()) + (accumulate ? *total : 0);
  return absl::OkStatus();
}

absl::Status CpuBackend::ScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckScaleToNorm(max_norm, sum_of_squares, y));
  const double norm = std::sqrt(*sum_of_squares.data<const double>());
  if (std::isfinite(norm) && norm > max_norm) cpu::Scale(static_cast<float>(max_norm / norm), y.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::Axpy(float alpha, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckSame("Axpy", "y", y, "x", x));
  cpu::Axpy(alpha, In(x), x.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::Gemm(bool transpose_a, bool transpose_b, float alpha, const DeviceTensor& a,
                              const DeviceTensor& b, float beta, const DeviceTensor& c) {
  GemmSizes sizes;
  RUBATO_RETURN_IF_ERROR(CheckGemm(ElementType::kFloat32, transpose_a, transpose_b, a, b, c, sizes));
  return cpu::Sgemm(threads_, transpose_a, transpose_b, sizes.m, sizes.n, sizes.k, alpha, In(a), In(b), beta, Out(c));
}

absl::Status CpuBackend::Linear(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& bias,
                                const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckLinear(ElementType::kFloat32, "Linear", x, weight, bias, y));
  if (x.rows() == 0) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(Gemm(false, true, 1, x, weight, 0, y));
  return bias.empty() ? absl::OkStatus() : AddBias(bias, y);
}

absl::Status CpuBackend::LinearBackward(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& dy,
                                        bool accumulate, const DeviceTensor& dx, const DeviceTensor& dweight,
                                        const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckLinearBackward(ElementType::kFloat32, x, weight, dy, dx, dweight, dbias));
  if (x.rows() == 0) {
    if (accumulate) return absl::OkStatus();
    RUBATO_RETURN_IF_ERROR(Fill(0, dweight));
    return dbias.empty() ? absl::OkStatus() : Fill(0, dbias);
  }
  RUBATO_RETURN_IF_ERROR(Gemm(true, false, 1, dy, x, accumulate ? 1 : 0, dweight));
  if (!dbias.empty()) RUBATO_RETURN_IF_ERROR(BiasGradient(dy, accumulate, dbias));
  return dx.empty() ? absl::OkStatus() : Gemm(false, false, 1, dy, weight, 0, dx);
}

absl::Status CpuBackend::AddBias(const DeviceTensor& bias, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckBias("AddBias", bias, y));
  const int64_t channels = bias.elements();
  cpu::AddBias(In(bias), y.rows(), channels, y.columns() / channels, Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::BiasGradient(const DeviceTensor& dy, bool accumulate, const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckBias("BiasGradient", dbias, dy));
  const int64_t channels = dbias.elements();
  cpu::BiasGradient(In(dy), dy.rows(), channels, dy.columns() / channels, accumulate, Out(dbias));
  return absl::OkStatus();
}

absl::Status CpuBackend::Conv2d(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& weight,
                                const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckConv2d(ElementType::kFloat32, ElementType::kFloat32, geometry, x, weight, y));
  return conv_->Forward(geometry, x.rows(), In(x), In(weight), Out(y));
}

absl::Status CpuBackend::Conv2dBackwardData(const Conv2dGeometry& geometry, const DeviceTensor& dy,
                                            const DeviceTensor& weight, const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckConv2d(ElementType::kFloat32, ElementType::kFloat32, geometry, dx, weight, dy));
  return conv_->BackwardData(geometry, dx.rows(), In(dy), In(weight), Out(dx));
}

absl::Status CpuBackend::Conv2dBackwardWeight(const Conv2dGeometry& geometry, const DeviceTensor& x,
                                              const DeviceTensor& dy, bool accumulate, const DeviceTensor& dweight) {
  RUBATO_RETURN_IF_ERROR(CheckConv2d(ElementType::kFloat32, ElementType::kFloat32, geometry, x, dweight, dy));
  return conv_->BackwardWeight(geometry, x.rows(), In(x), In(dy), accumulate, Out(dweight));
}

absl::Status CpuBackend::MaxPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                                   const DeviceTensor& argmax) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, x, y, &argmax));
  cpu::MaxPool2d(geometry, x.rows(), In(x), Out(y), argmax.data<int32_t>());
  return absl::OkStatus();
}

absl::Status CpuBackend::MaxPool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                           const DeviceTensor& argmax, const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, dx, dy, &argmax));
  cpu::MaxPool2dBackward(geometry, dx.rows(), In(dy), argmax.data<const int32_t>(), Out(dx));
  return absl::OkStatus();
}

absl::Status CpuBackend::AveragePool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, x, y, nullptr));
  cpu::AveragePool2d(geometry, x.rows(), In(x), Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::AveragePool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                               const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckPool2d(geometry, dx, dy, nullptr));
  cpu::AveragePool2dBackward(geometry, dx.rows(), In(dy), Out(dx));
  return absl::OkStatus();
}

absl::Status CpuBackend::Activate(Activation activation, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckSame("Activate", "y", y, "x", x));
  cpu::Activate(activation, In(x), x.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::ActivateBackward(Activation activation, const DeviceTensor& x, const DeviceTensor& y,
                                          const DeviceTensor& dy, const DeviceTensor& dx) {
  RUBATO_RETURN_IF_ERROR(CheckSame("ActivateBackward", "y", y, "x", x));
  RUBATO_RETURN_IF_ERROR(CheckSame("ActivateBackward", "dy", dy, "x", x));
  RUBATO_RETURN_IF_ERROR(CheckSame("ActivateBackward", "dx", dx, "x", x));
  cpu::ActivateBackward(activation, In(x), In(y), In(dy), x.elements(), Out(dx));
  return absl::OkStatus();
}

absl::Status CpuBackend::Dropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckDropout(mask, x, y));
  cpu::Dropout(mask, In(x), x.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::LayerNorm(float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                                   const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                                   const DeviceTensor& inverse_deviation) {
  RUBATO_RETURN_IF_ERROR(CheckLayerNorm(x, gain, bias, y, mean, inverse_deviation));
  cpu::LayerNorm(epsilon, x.rows(), x.columns(), In(x), In(gain), In(bias), Out(y), Out(mean), Out(inverse_deviation));
  return absl::OkStatus();
}

absl::Status CpuBackend::LayerNormBackward(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& mean,
                                           const DeviceTensor& inverse_deviation, const DeviceTensor& dy,
                                           bool accumulate, bool add_to_dx, const DeviceTensor& dx,
                                           const DeviceTensor& dgain, const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckLayerNorm(x, gain, dbias, dy, mean, inverse_deviation));
  RUBATO_RETURN_IF_ERROR(CheckSame("LayerNormBackward", "dgain", dgain, "dbias", dbias));
  if (!dx.empty()) RUBATO_RETURN_IF_ERROR(CheckSame("LayerNormBackward", "dx", dx, "x", x));
  cpu::LayerNormBackward(x.rows(), x.columns(), In(x), In(gain), In(mean), In(inverse_deviation), In(dy), accumulate,
                         add_to_dx, Out(dx), Out(dgain), Out(dbias));
  return absl::OkStatus();
}

absl::Status CpuBackend::GroupNorm(int64_t groups, float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                                   const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                                   const DeviceTensor& inverse_deviation) {
  RUBATO_RETURN_IF_ERROR(CheckGroupNorm(groups, x, gain, bias, y, mean, inverse_deviation));
  cpu::GroupNorm(NormSizes(groups, x), epsilon, In(x), In(gain), In(bias), Out(y), Out(mean), Out(inverse_deviation));
  return absl::OkStatus();
}

absl::Status CpuBackend::GroupNormBackward(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain,
                                           const DeviceTensor& mean, const DeviceTensor& inverse_deviation,
                                           const DeviceTensor& dy, bool accumulate, const DeviceTensor& dx,
                                           const DeviceTensor& dgain, const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckGroupNorm(groups, x, gain, dbias, dy, mean, inverse_deviation));
  RUBATO_RETURN_IF_ERROR(CheckSame("GroupNormBackward", "dgain", dgain, "dbias", dbias));
  if (!dx.empty()) RUBATO_RETURN_IF_ERROR(CheckSame("GroupNormBackward", "dx", dx, "x", x));
  cpu::GroupNormBackward(NormSizes(groups, x), In(x), In(gain), In(mean), In(inverse_deviation), In(dy), accumulate,
                         Out(dx), Out(dgain), Out(dbias));
  return absl::OkStatus();
}

absl::Status CpuBackend::Embed(const DeviceTensor& table, const DeviceTensor& indices, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckEmbed("Embed", table, indices, y));
  cpu::Embed(In(table), table.columns(), indices.data<const int32_t>(), indices.elements(), Out(y));
  return absl::OkStatus();
}

absl::Status CpuBackend::EmbedBackward(const DeviceTensor& indices, const DeviceTensor& dy, bool accumulate,
                                       const DeviceTensor& dtable) {
  RUBATO_RETURN_IF_ERROR(CheckEmbed("EmbedBackward", dtable, indices, dy));
  cpu::EmbedBackward(indices.data<const int32_t>(), indices.elements(), In(dy), dtable.rows(), dtable.columns(),
                     accumulate, Out(dtable));
  return absl::OkStatus();
}

absl::Status CpuBackend::CausalAttention(const AttentionGeometry& geometry, const DeviceTensor& qkv,
                                         const DeviceTensor& y, const DeviceTensor& log_sum_exp) {
  RUBATO_RETURN_IF_ERROR(CheckAttention(ElementType::kFloat32, geometry, qkv, y, log_sum_exp));
  return attention_.Forward(geometry, qkv.rows(), In(qkv), Out(y), Out(log_sum_exp));
}

absl::Status CpuBackend::CausalAttentionBackward(const AttentionGeometry& geometry, const DeviceTensor& qkv,
                                                 const DeviceTensor& y, const DeviceTensor& log_sum_exp,
                                                 const DeviceTensor& dy, const DeviceTensor& dqkv) {
  RUBATO_RETURN_IF_ERROR(CheckAttention(ElementType::kFloat32, geometry, qkv, y, log_sum_exp));
  RUBATO_RETURN_IF_ERROR(CheckSame("CausalAttentionBackward", "dy", dy, "y", y));
  RUBATO_RETURN_IF_ERROR(CheckSame("CausalAttentionBackward", "dqkv", dqkv, "qkv", qkv));
  return attention_.Backward(geometry, qkv.rows(), In(qkv), In(y), In(log_sum_exp), In(dy), Out(dqkv));
}

absl::Status CpuBackend::SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes,
                                             float gradient_scale, const DeviceTensor& dlogits,
                                             const DeviceTensor& sums) {
  RUBATO_RETURN_IF_ERROR(CheckLoss("SoftmaxCrossEntropy", logits, dlogits, sums));
  RUBATO_RETURN_IF_ERROR(CheckTensor("SoftmaxCrossEntropy", "classes", classes, {logits.rows()}, ElementType::kInt32));
  cpu::SoftmaxCrossEntropy(logits.rows(), logits.columns(), In(logits), classes.data<const int32_t>(), gradient_scale,
                           Out(dlogits), sums.data<double>());
  return absl::OkStatus();
}

absl::Status CpuBackend::MeanSquaredError(const DeviceTensor& outputs, const DeviceTensor& targets,
                                          float gradient_scale, const DeviceTensor& doutputs,
                                          const DeviceTensor& sums) {
  RUBATO_RETURN_IF_ERROR(CheckLoss("MeanSquaredError", outputs, doutputs, sums));
  RUBATO_RETURN_IF_ERROR(CheckSame("MeanSquaredError", "targets", targets, "outputs", outputs));
  cpu::MeanSquaredError(outputs.rows(), outputs.columns(), In(outputs), In(targets), gradient_scale, Out(doutputs),
                        sums.data<double>());
  return absl::OkStatus();
}

absl::Status CpuBackend::ApplyUpdate(const UpdateRule& rule, const DeviceTensor& gradient, const DeviceTensor& weights,
                                     const DeviceTensor& first_slot, const DeviceTensor& second_slot) {
  RUBATO_RETURN_IF_ERROR(CheckUpdate(rule, gradient, weights, first_slot, second_slot));
  const int64_t n = weights.elements();
  const ByteSpan piece = BytesOf(In(gradient), n);
  const EncodedGradient alone = {.pieces = {&piece, 1}};
  float* const slots[] = {Out(first_slot), Out(second_slot)};
  ReduceAndApply(rule, &alone, 1, Out(weights), Out(weights), slots, n);
  return absl::OkStatus();
}

absl::Status CpuBackend::Encode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                                const DeviceTensor& message) {
  RUBATO_RETURN_IF_ERROR(CheckEncode(range, values, residual, message));
  rubato::Encode(range.codec, In(values) + range.offset, range.count, Out(residual), range.seed, range.stream,
                 message.data<uint8_t>());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(const CpuBackendOptions& options) {
  if (options.compute_threads < 1 || options.compute_threads > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("compute_threads: ", options.compute_threads, " is not in 1 to 1024"));
  }
  return std::make_unique<CpuBackend>(options);
}

}  // namespace rubato
