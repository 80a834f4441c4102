#include "kernels/cuda/host_memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/status.h"
#include "kernels/cuda/check.h"

namespace rubato::cuda {
namespace {

// What can be page-locked is whole pages.
constexpr uintptr_t kPage = 4096;

uintptr_t Address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

}  // namespace

void HostMemory::Locked::Add(const void* memory, int64_t bytes) {
  MutexLock lock(mu);
  ranges[Address(memory)] = bytes;
}

void HostMemory::Locked::Remove(const void* memory) {
  MutexLock lock(mu);
  ranges.erase(Address(memory));
}

HostMemory::Locked* HostMemory::OfThisProcess() {
  static auto* const locked = new Locked();
  return locked;
}

HostMemory::HostMemory() : locked_(OfThisProcess()) {}

absl::StatusOr<std::shared_ptr<void>> HostMemory::Allocate(int64_t bytes, const Provider& provider) {
  const int64_t pages = (std::max<int64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  if (provider) {
    // Pages that nobody else has a part of: a page can be locked once only.
    std::shared_ptr<void> provided = provider(static_cast<size_t>(pages) + kPage);
    if (provided != nullptr) {
      void* first = reinterpret_cast<void*>((Address(provided.get()) + kPage - 1) / kPage * kPage);
      return Lock(std::shared_ptr<void>(std::move(provided), first), pages);
    }
  }
  void* memory = nullptr;
  RUBATO_CUDA_RETURN_IF_ERROR(cudaHostAlloc(&memory, static_cast<size_t>(pages), cudaHostAllocPortable));
  std::memset(memory, 0, static_cast<size_t>(pages));
  locked_->Add(memory, pages);
  return std::shared_ptr<void>(memory, [locked = locked_](void* freed) {
    locked->Remove(freed);
    (void)cudaFreeHost(freed);
  });
}

absl::StatusOr<std::shared_ptr<void>> HostMemory::Lock(std::shared_ptr<void> memory, int64_t bytes) {
  void* address = memory.get();
  if (cudaHostRegister(address, static_cast<size_t>(bytes), cudaHostRegisterPortable) != cudaSuccess) {
    // Its owner may have a limit on locked pages. Copies then go through the staging memory.
    (void)cudaGetLastError();
    return memory;
  }
  locked_->Add(address, bytes);
  return std::shared_ptr<void>(address, [locked = locked_, memory = std::move(memory)](void* released) {
    locked->Remove(released);
    (void)cudaHostUnregister(released);
  });
}

bool HostMemory::IsLocked(const void* memory, int64_t bytes) const {
  MutexLock lock(locked_->mu);
  auto after = locked_->ranges.upper_bound(Address(memory));
  if (after == locked_->ranges.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return Address(memory) + static_cast<uintptr_t>(bytes) <= begin + static_cast<uintptr_t>(size);
}

}  // namespace rubato::cuda
