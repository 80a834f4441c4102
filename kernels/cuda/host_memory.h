#ifndef RUBATO_KERNELS_CUDA_HOST_MEMORY_H_
#define RUBATO_KERNELS_CUDA_HOST_MEMORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"

namespace rubato::cuda {

// Page-locked memory of the host, from and to which devices copy by themselves. What one object has allocated, all
// know: it is locked for every GPU. Thread-safe.
class HostMemory {
 public:
  using Provider = std::function<std::shared_ptr<void>(size_t bytes)>;

  HostMemory();

  // Zeroed, at a multiple of 64. With a provider, from there if it has room. ResourceExhausted: none is left.
  absl::StatusOr<std::shared_ptr<void>> Allocate(int64_t bytes, const Provider& provider);
  // Whether all of [memory, memory + bytes) came from Allocate, of any object, is still held and could be page-locked.
  bool IsLocked(const void* memory, int64_t bytes) const;

 private:
  struct Locked {
    mutable Mutex mu;
    std::map<uintptr_t, int64_t> ranges ABSL_GUARDED_BY(mu);  // Address to bytes.
    void Add(const void* memory, int64_t bytes);
    void Remove(const void* memory);
  };
  // Never destroyed.
  static Locked* OfThisProcess();

  absl::StatusOr<std::shared_ptr<void>> Lock(std::shared_ptr<void> memory, int64_t bytes);

  Locked* const locked_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_HOST_MEMORY_H_
