#include "kernels/cpu/cpu_backend.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/available_memory.h"
#include "common/status.h"
#include "kernels/cpu/buffer.h"
#include "kernels/cpu/cpu_operations.h"

namespace rubato {
namespace {

class CpuEvent : public Event {
 public:
  bool Done() const override { return true; }
  absl::Status Wait() const override { return absl::OkStatus(); }
};

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options)
      : sending_memory_(options.sending_memory), operations_(options.compute_threads, options.im2col_convolutions) {}

  std::string Name() const override { return "cpu"; }
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t bytes) override;
  absl::StatusOr<std::shared_ptr<void>> AllocateHostForSending(int64_t bytes) override;
  absl::StatusOr<DeviceMemory> Memory() const override;
  float* HostPointer(const DeviceTensor& tensor) const override {
    return tensor.type() == ElementType::kFloat32 ? tensor.data<float>() : nullptr;
  }
  absl::StatusOr<std::unique_ptr<Event>> Record() override { return std::make_unique<CpuEvent>(); }
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  absl::StatusOr<DeviceTensor> DoAllocate(Shape shape, ElementType type, int64_t bytes) override;
  absl::StatusOr<DeviceTensor> DoAllocateForSending(Shape shape, int64_t bytes) override;
  absl::Status DoCopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) override;
  absl::Status DoCopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) override;
  absl::Status DoCopyFromPeer(Backend*, const DeviceTensor& x, const DeviceTensor& y) override {
    return operations_.Copy(x, y);
  }
  Operations* operations() override { return &operations_; }

  // Null if there is no such memory, or no room in it.
  std::shared_ptr<void> SendingMemory(int64_t bytes) const {
    return sending_memory_ && bytes > 0 ? sending_memory_(bytes) : nullptr;
  }

  const std::function<std::shared_ptr<void>(size_t)> sending_memory_;
  CpuOperations operations_;
};

absl::StatusOr<DeviceTensor> CpuBackend::DoAllocate(Shape shape, ElementType type, int64_t bytes) {
  void* memory = AllocateZeros(bytes);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Allocate: no memory for a tensor of ", ShapeText(shape), ", ", bytes, " bytes"));
  }
  return DeviceTensor(std::make_shared<CpuBuffer>(memory), std::move(shape), type);
}

absl::StatusOr<DeviceTensor> CpuBackend::DoAllocateForSending(Shape shape, int64_t bytes) {
  std::shared_ptr<void> memory = SendingMemory(bytes);
  if (memory == nullptr) return DoAllocate(std::move(shape), ElementType::kFloat32, bytes);
  return DeviceTensor(std::make_shared<SentBuffer>(std::move(memory)), std::move(shape), ElementType::kFloat32);
}

absl::StatusOr<std::shared_ptr<void>> CpuBackend::AllocateHost(int64_t bytes) {
  void* memory = AllocateZeros(bytes);
  if (memory == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("AllocateHost: no memory for ", bytes, " bytes"));
  return std::shared_ptr<void>(memory, std::free);
}

absl::StatusOr<std::shared_ptr<void>> CpuBackend::AllocateHostForSending(int64_t bytes) {
  std::shared_ptr<void> memory = SendingMemory(bytes);
  if (memory != nullptr) return memory;
  return AllocateHost(bytes);
}

absl::StatusOr<DeviceMemory> CpuBackend::Memory() const {
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages < 0 || page_bytes < 0) return absl::InternalError("sysconf does not know how much memory there is");
  const int64_t total = pages * page_bytes;
  return DeviceMemory{.total = total, .free = AvailableMemoryBytes().value_or(total)};
}

absl::Status CpuBackend::DoCopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) {
  const int64_t size = ElementBytes(to.type());
  std::memcpy(to.data<char>() + offset * size, from, count * size);
  return absl::OkStatus();
}

absl::Status CpuBackend::DoCopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) {
  const int64_t size = ElementBytes(from.type());
  std::memcpy(to, from.data<const char>() + offset * size, count * size);
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
