#ifndef RUBATO_KERNELS_PLANNING_BACKEND_H_
#define RUBATO_KERNELS_PLANNING_BACKEND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "kernels/backend.h"

namespace rubato {

// A device without memory that counts what it is asked for: what a model takes, before there is one. Its tensors have a
// shape and no elements, and its operations do nothing but check their arguments. Used by one thread at a time.
class PlanningBackend : public Backend {
 public:
  // `rules` are those of the device that is planned for.
  explicit PlanningBackend(const WorkspaceRules& rules = {}) : rules_(rules) {}

  // Each tensor takes a multiple of 256 bytes.
  static constexpr int64_t kGranularity = 256;

  // Of all tensors that were asked for.
  int64_t bytes() const { return bytes_; }

  std::string Name() const override { return "plan"; }
  // Unimplemented: there is no memory behind it.
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t) override { return NoMemory(); }
  absl::StatusOr<std::shared_ptr<void>> AllocateHostForSending(int64_t) override { return NoMemory(); }
  absl::StatusOr<DeviceMemory> Memory() const override { return DeviceMemory{}; }
  WorkspaceRules Workspace() const override { return rules_; }
  float* HostPointer(const DeviceTensor&) const override { return nullptr; }
  absl::StatusOr<std::unique_ptr<Event>> Record() override;
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  static absl::Status NoMemory() { return absl::UnimplementedError("a plan has no memory"); }

  // InvalidArgument: more than an int64 can count.
  absl::StatusOr<DeviceTensor> DoAllocate(Shape shape, ElementType type, int64_t bytes) override;
  absl::Status DoCopyToDevice(const DeviceTensor&, int64_t, int64_t, const void*) override { return absl::OkStatus(); }
  absl::Status DoCopyToHost(const DeviceTensor&, int64_t, int64_t, void*) override { return NoMemory(); }
  absl::Status DoCopyFromPeer(Backend*, const DeviceTensor&, const DeviceTensor&) override { return absl::OkStatus(); }
  Operations* operations() override { return nullptr; }

  const WorkspaceRules rules_;
  int64_t bytes_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_PLANNING_BACKEND_H_
