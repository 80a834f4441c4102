#ifndef RUBATO_WORKER_DEVICE_TESTING_CAREFUL_BACKEND_H_
#define RUBATO_WORKER_DEVICE_TESTING_CAREFUL_BACKEND_H_

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "kernels/testing/deferred_backend.h"

namespace rubato::worker {

// A device that fails the test if its host memory goes while it may still copy from or to it: between a copy and the
// Synchronize after it.
class CarefulBackend : public DeferredBackend {
 public:
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t bytes) override {
    return Observed(DeferredBackend::AllocateHost(bytes));
  }
  absl::StatusOr<std::shared_ptr<void>> AllocateHostForSending(int64_t bytes) override {
    return Observed(DeferredBackend::AllocateHostForSending(bytes));
  }
  absl::Status DoCopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) override {
    *copies_ = true;
    return DeferredBackend::DoCopyToDevice(to, offset, count, from);
  }
  absl::Status DoCopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) override {
    *copies_ = true;
    return DeferredBackend::DoCopyToHost(from, offset, count, to);
  }
  absl::Status Synchronize() override {
    *copies_ = false;
    return DeferredBackend::Synchronize();
  }

 private:
  absl::StatusOr<std::shared_ptr<void>> Observed(absl::StatusOr<std::shared_ptr<void>> memory) {
    if (!memory.ok()) return memory;
    return std::shared_ptr<void>(memory->get(), [memory = *memory, copies = copies_](void*) {
      EXPECT_FALSE(*copies) << "host memory goes before the device was waited for";
    });
  }

  // Shared with the memory.
  const std::shared_ptr<bool> copies_ = std::make_shared<bool>(false);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DEVICE_TESTING_CAREFUL_BACKEND_H_
