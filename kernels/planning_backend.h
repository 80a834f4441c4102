#ifndef RUBATO_KERNELS_PLANNING_BACKEND_H_
#define RUBATO_KERNELS_PLANNING_BACKEND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "kernels/backend.h"

namespace rubato {

// A device without memory that counts what it is asked for: what a model takes, before there is one. Its tensors have a
// shape and no elements, and its operations do nothing. Used by one thread at a time.
class PlanningBackend : public Backend {
 public:
  // `rules` are those of the device that is planned for.
  explicit PlanningBackend(const WorkspaceRules& rules = {}) : rules_(rules) {}

  // Each tensor takes a multiple of 256 bytes.
  static constexpr int64_t kGranularity = 256;

  // Of all tensors that were asked for.
  int64_t bytes() const { return bytes_; }

  std::string Name() const override { return "plan"; }
  // InvalidArgument: a negative or overflowing shape, or more than an int64 can count.
  absl::StatusOr<DeviceTensor> Allocate(Shape shape, ElementType type) override;
  // Unimplemented: there is no memory behind it.
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t) override { return NoMemory(); }
  absl::StatusOr<std::shared_ptr<void>> AllocateHostForSending(int64_t) override { return NoMemory(); }
  absl::StatusOr<DeviceMemory> Memory() const override { return DeviceMemory{}; }
  WorkspaceRules Workspace() const override { return rules_; }
  float* HostPointer(const DeviceTensor&) const override { return nullptr; }
  absl::StatusOr<std::unique_ptr<Event>> Record() override;
  absl::Status Synchronize() override { return absl::OkStatus(); }

  using Tensor = const DeviceTensor&;
  absl::Status CopyToDevice(Tensor, int64_t, int64_t, const void*) override { return absl::OkStatus(); }
  absl::Status CopyToHost(Tensor, int64_t, int64_t, void*) override { return NoMemory(); }
  absl::Status CopyFromPeer(Backend*, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status Fill(float, Tensor) override { return absl::OkStatus(); }
  absl::Status Copy(Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status Add(Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status Axpy(float, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status Scale(float, Tensor) override { return absl::OkStatus(); }
  absl::Status SumOfSquares(Tensor, bool, Tensor) override { return absl::OkStatus(); }
  absl::Status ScaleToNorm(float, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status Gemm(bool, bool, float, Tensor, Tensor, float, Tensor) override { return absl::OkStatus(); }
  absl::Status Linear(Tensor, Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status LinearBackward(Tensor, Tensor, Tensor, bool, Tensor, Tensor, Tensor) override {
    return absl::OkStatus();
  }
  absl::Status AddBias(Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status BiasGradient(Tensor, bool, Tensor) override { return absl::OkStatus(); }
  absl::Status Conv2d(const Conv2dGeometry&, Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status Conv2dBackwardData(const Conv2dGeometry&, Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status Conv2dBackwardWeight(const Conv2dGeometry&, Tensor, Tensor, bool, Tensor) override {
    return absl::OkStatus();
  }
  absl::Status MaxPool2d(const Pool2dGeometry&, Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status MaxPool2dBackward(const Pool2dGeometry&, Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status AveragePool2d(const Pool2dGeometry&, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status AveragePool2dBackward(const Pool2dGeometry&, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status Activate(Activation, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status ActivateBackward(Activation, Tensor, Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status Dropout(const DropoutMask&, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status LayerNorm(float, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status LayerNormBackward(Tensor, Tensor, Tensor, Tensor, Tensor, bool, bool, Tensor, Tensor, Tensor) override {
    return absl::OkStatus();
  }
  absl::Status GroupNorm(int64_t, float, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor) override {
    return absl::OkStatus();
  }
  absl::Status GroupNormBackward(int64_t, Tensor, Tensor, Tensor, Tensor, Tensor, bool, Tensor, Tensor,
                                 Tensor) override {
    return absl::OkStatus();
  }
  absl::Status Embed(Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status EmbedBackward(Tensor, Tensor, bool, Tensor) override { return absl::OkStatus(); }
  absl::Status CausalAttention(const AttentionGeometry&, Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status CausalAttentionBackward(const AttentionGeometry&, Tensor, Tensor, Tensor, Tensor, Tensor) override {
    return absl::OkStatus();
  }
  absl::Status SoftmaxCrossEntropy(Tensor, Tensor, float, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status MeanSquaredError(Tensor, Tensor, float, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status ApplyUpdate(const UpdateRule&, Tensor, Tensor, Tensor, Tensor) override { return absl::OkStatus(); }
  absl::Status Encode(const EncodedRange&, Tensor, Tensor, Tensor) override { return absl::OkStatus(); }

 private:
  static absl::Status NoMemory() { return absl::UnimplementedError("a plan has no memory"); }

  const WorkspaceRules rules_;
  int64_t bytes_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_PLANNING_BACKEND_H_
