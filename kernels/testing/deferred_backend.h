#ifndef RUBATO_KERNELS_TESTING_DEFERRED_BACKEND_H_
#define RUBATO_KERNELS_TESTING_DEFERRED_BACKEND_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "kernels/backend.h"

namespace rubato {

// A device with memory of its own, played by the host: HostPointer is null, and work is done as late as the contract of
// Backend allows, when somebody waits for it. What is read too early is old, and what is overwritten too early is
// wrong. One thread at a time, also for events. Errors of arguments come when the work is done.
class DeferredBackend : public Backend {
 public:
  DeferredBackend();
  ~DeferredBackend() override;

  std::string Name() const override { return "deferred"; }
  absl::StatusOr<DeviceTensor> Allocate(Shape shape, ElementType type) override;
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t bytes) override;
  absl::StatusOr<std::shared_ptr<void>> AllocateHostForSending(int64_t bytes) override;
  absl::StatusOr<DeviceMemory> Memory() const override;
  absl::Status CopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) override {
    return Defer(&Backend::CopyToDevice, to, offset, count, from);
  }
  absl::Status CopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) override {
    return Defer(&Backend::CopyToHost, from, offset, count, to);
  }
  absl::Status CopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) override;
  float* HostPointer(const DeviceTensor&) const override { return nullptr; }
  absl::StatusOr<std::unique_ptr<Event>> Record() override;
  absl::Status Synchronize() override;

  // From now on work fails when it is done.
  void FailWith(absl::Status status);

  absl::Status Fill(float value, const DeviceTensor& y) override { return Defer(&Backend::Fill, value, y); }
  absl::Status Copy(const DeviceTensor& x, const DeviceTensor& y) override { return Defer(&Backend::Copy, x, y); }
  absl::Status Add(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y) override {
    return Defer(&Backend::Add, a, b, y);
  }
  absl::Status Axpy(float alpha, const DeviceTensor& x, const DeviceTensor& y) override {
    return Defer(&Backend::Axpy, alpha, x, y);
  }
  absl::Status Scale(float factor, const DeviceTensor& y) override { return Defer(&Backend::Scale, factor, y); }
  absl::Status SumOfSquares(const DeviceTensor& x, bool accumulate, const DeviceTensor& sum) override {
    return Defer(&Backend::SumOfSquares, x, accumulate, sum);
  }
  absl::Status ScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y) override {
    return Defer(&Backend::ScaleToNorm, max_norm, sum_of_squares, y);
  }
  absl::Status Gemm(bool transpose_a, bool transpose_b, float alpha, const DeviceTensor& a, const DeviceTensor& b,
                    float beta, const DeviceTensor& c) override {
    return Defer(&Backend::Gemm, transpose_a, transpose_b, alpha, a, b, beta, c);
  }
  absl::Status Linear(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& bias,
                      const DeviceTensor& y) override {
    return Defer(&Backend::Linear, x, weight, bias, y);
  }
  absl::Status LinearBackward(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& dy,
                              bool accumulate, const DeviceTensor& dx, const DeviceTensor& dweight,
                              const DeviceTensor& dbias) override {
    return Defer(&Backend::LinearBackward, x, weight, dy, accumulate, dx, dweight, dbias);
  }
  absl::Status AddBias(const DeviceTensor& bias, const DeviceTensor& y) override {
    return Defer(&Backend::AddBias, bias, y);
  }
  absl::Status BiasGradient(const DeviceTensor& dy, bool accumulate, const DeviceTensor& dbias) override {
    return Defer(&Backend::BiasGradient, dy, accumulate, dbias);
  }
  absl::Status Conv2d(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& weight,
                      const DeviceTensor& y) override {
    return Defer(&Backend::Conv2d, geometry, x, weight, y);
  }
  absl::Status Conv2dBackwardData(const Conv2dGeometry& geometry, const DeviceTensor& dy, const DeviceTensor& weight,
                                  const DeviceTensor& dx) override {
    return Defer(&Backend::Conv2dBackwardData, geometry, dy, weight, dx);
  }
  absl::Status Conv2dBackwardWeight(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& dy,
                                    bool accumulate, const DeviceTensor& dweight) override {
    return Defer(&Backend::Conv2dBackwardWeight, geometry, x, dy, accumulate, dweight);
  }
  absl::Status MaxPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                         const DeviceTensor& argmax) override {
    return Defer(&Backend::MaxPool2d, geometry, x, y, argmax);
  }
  absl::Status MaxPool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy, const DeviceTensor& argmax,
                                 const DeviceTensor& dx) override {
    return Defer(&Backend::MaxPool2dBackward, geometry, dy, argmax, dx);
  }
  absl::Status AveragePool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y) override {
    return Defer(&Backend::AveragePool2d, geometry, x, y);
  }
  absl::Status AveragePool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                     const DeviceTensor& dx) override {
    return Defer(&Backend::AveragePool2dBackward, geometry, dy, dx);
  }
  absl::Status Activate(Activation activation, const DeviceTensor& x, const DeviceTensor& y) override {
    return Defer(&Backend::Activate, activation, x, y);
  }
  absl::Status ActivateBackward(Activation activation, const DeviceTensor& x, const DeviceTensor& y,
                                const DeviceTensor& dy, const DeviceTensor& dx) override {
    return Defer(&Backend::ActivateBackward, activation, x, y, dy, dx);
  }
  absl::Status Dropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y) override {
    return Defer(&Backend::Dropout, mask, x, y);
  }
  absl::Status LayerNorm(float epsilon, const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& bias,
                         const DeviceTensor& y, const DeviceTensor& mean,
                         const DeviceTensor& inverse_deviation) override {
    return Defer(&Backend::LayerNorm, epsilon, x, gain, bias, y, mean, inverse_deviation);
  }
  absl::Status LayerNormBackward(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& mean,
                                 const DeviceTensor& inverse_deviation, const DeviceTensor& dy, bool accumulate,
                                 bool add_to_dx, const DeviceTensor& dx, const DeviceTensor& dgain,
                                 const DeviceTensor& dbias) override {
    return Defer(&Backend::LayerNormBackward, x, gain, mean, inverse_deviation, dy, accumulate, add_to_dx, dx, dgain,
                 dbias);
  }
  absl::Status GroupNorm(int64_t groups, float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                         const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                         const DeviceTensor& inverse_deviation) override {
    return Defer(&Backend::GroupNorm, groups, epsilon, x, gain, bias, y, mean, inverse_deviation);
  }
  absl::Status GroupNormBackward(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain,
                                 const DeviceTensor& mean, const DeviceTensor& inverse_deviation,
                                 const DeviceTensor& dy, bool accumulate, const DeviceTensor& dx,
                                 const DeviceTensor& dgain, const DeviceTensor& dbias) override {
    return Defer(&Backend::GroupNormBackward, groups, x, gain, mean, inverse_deviation, dy, accumulate, dx, dgain,
                 dbias);
  }
  absl::Status Embed(const DeviceTensor& table, const DeviceTensor& indices, const DeviceTensor& y) override {
    return Defer(&Backend::Embed, table, indices, y);
  }
  absl::Status EmbedBackward(const DeviceTensor& indices, const DeviceTensor& dy, bool accumulate,
                             const DeviceTensor& dtable) override {
    return Defer(&Backend::EmbedBackward, indices, dy, accumulate, dtable);
  }
  absl::Status CausalAttention(const AttentionGeometry& geometry, const DeviceTensor& qkv, const DeviceTensor& y,
                               const DeviceTensor& log_sum_exp) override {
    return Defer(&Backend::CausalAttention, geometry, qkv, y, log_sum_exp);
  }
  absl::Status CausalAttentionBackward(const AttentionGeometry& geometry, const DeviceTensor& qkv,
                                       const DeviceTensor& y, const DeviceTensor& log_sum_exp, const DeviceTensor& dy,
                                       const DeviceTensor& dqkv) override {
    return Defer(&Backend::CausalAttentionBackward, geometry, qkv, y, log_sum_exp, dy, dqkv);
  }
  absl::Status SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes, float gradient_scale,
                                   const DeviceTensor& dlogits, const DeviceTensor& sums) override {
    return Defer(&Backend::SoftmaxCrossEntropy, logits, classes, gradient_scale, dlogits, sums);
  }
  absl::Status MeanSquaredError(const DeviceTensor& outputs, const DeviceTensor& targets, float gradient_scale,
                                const DeviceTensor& doutputs, const DeviceTensor& sums) override {
    return Defer(&Backend::MeanSquaredError, outputs, targets, gradient_scale, doutputs, sums);
  }
  absl::Status ApplyUpdate(const UpdateRule& rule, const DeviceTensor& gradient, const DeviceTensor& weights,
                           const DeviceTensor& first_slot, const DeviceTensor& second_slot) override {
    return Defer(&Backend::ApplyUpdate, rule, gradient, weights, first_slot, second_slot);
  }
  absl::Status Encode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                      const DeviceTensor& message) override {
    return Defer(&Backend::Encode, range, values, residual, message);
  }

 private:
  class Queue;

  template <typename... Parameters, typename... Arguments>
  absl::Status Defer(absl::Status (Backend::*operation)(Parameters...), Arguments... arguments) {
    Enqueue([=](Backend& host) { return (host.*operation)(arguments...); });
    return absl::OkStatus();
  }
  void Enqueue(std::function<absl::Status(Backend& host)> work);

  const std::shared_ptr<Queue> queue_;  // Shared with the events.
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_TESTING_DEFERRED_BACKEND_H_
