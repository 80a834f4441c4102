#ifndef RUBATO_KERNELS_CUDA_STAGING_H_
#define RUBATO_KERNELS_CUDA_STAGING_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "kernels/cuda/host_memory.h"
#include "kernels/cuda/streams.h"

namespace rubato::cuda {

// Copies between the device and host memory that is not page-locked, piece by piece through memory that is. One thread
// at a time. Internal: CUDA refused. ResourceExhausted: no page-locked memory.
class Staging {
 public:
  // Both outlive it.
  Staging(HostMemory* memory, Streams* streams) : memory_(memory), streams_(streams) {}

  // Enqueued in kCopyIn, where the caller has ordered it. `from` is free on return.
  absl::Status CopyToDevice(void* to, const void* from, int64_t bytes);
  // In kCopyOut. Done on return, and with it all that it had to wait for.
  absl::Status CopyToHost(void* to, const void* from, int64_t bytes);

 private:
  struct Slot {
    std::shared_ptr<void> memory;
    // After the last copy out of it.
    std::shared_ptr<const Mark> busy;
  };

  // A slot that nothing uses any more.
  absl::StatusOr<Slot*> NextSlot();

  HostMemory* const memory_;
  Streams* const streams_;
  std::array<Slot, 4> slots_;
  size_t next_ = 0;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_STAGING_H_
