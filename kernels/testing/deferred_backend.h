#ifndef RUBATO_KERNELS_TESTING_DEFERRED_BACKEND_H_
#define RUBATO_KERNELS_TESTING_DEFERRED_BACKEND_H_

#include <functional>
#include <memory>
#include <string>

#include "kernels/backend.h"
#include "kernels/operations.h"

namespace rubato {

// A device with memory of its own, emulated on the host: HostPointer is null, and work is done as late as the contract
// of Backend allows, when somebody waits for it. What is read too early is old, and what is overwritten too early is
// wrong. One thread at a time, also for events.
class DeferredBackend : public Backend {
 public:
  // It computes with these, or with the CPU's.
  explicit DeferredBackend(std::unique_ptr<Operations> operations = nullptr);
  ~DeferredBackend() override;

  std::string Name() const override { return "deferred"; }
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t bytes) override;
  absl::StatusOr<std::shared_ptr<void>> AllocateHostForSending(int64_t bytes) override;
  absl::StatusOr<DeviceMemory> Memory() const override;
  float* HostPointer(const DeviceTensor&) const override { return nullptr; }
  absl::StatusOr<std::unique_ptr<Event>> Record() override;
  absl::Status Synchronize() override;

  // From now on work fails when it is done.
  void FailWith(absl::Status status);

 protected:
  absl::Status DoCopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) override;
  absl::Status DoCopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) override;

 private:
  class Queue;

  absl::StatusOr<DeviceTensor> DoAllocate(Shape shape, ElementType type, int64_t bytes) override;
  absl::Status DoCopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) override;
  Operations* operations() override { return nullptr; }
  absl::Status Defer(std::function<absl::Status(Operations&)> operation) override;

  const std::shared_ptr<Queue> queue_;  // Shared with the events.
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_TESTING_DEFERRED_BACKEND_H_
