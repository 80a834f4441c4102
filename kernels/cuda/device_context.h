#ifndef RUBATO_KERNELS_CUDA_DEVICE_CONTEXT_H_
#define RUBATO_KERNELS_CUDA_DEVICE_CONTEXT_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/memory_pool.h"
#include "kernels/cuda/streams.h"
#include "kernels/cuda/work.h"
#include "kernels/device_tensor.h"

namespace rubato::cuda {

// A GPU that is in use: its memory, its streams, and what operations take while they run. A backend's copies and its
// operations share it. Used by one thread at a time.
class DeviceContext {
 public:
  using Tensors = std::initializer_list<const DeviceTensor*>;

  explicit DeviceContext(Device device) : device_(std::move(device)) {}

  // Before anything else. Internal: CUDA refuses.
  absl::Status Start();

  const Device& device() const { return device_; }
  // Null before Start.
  MemoryPool* pool() const { return pool_.get(); }
  Streams* streams() const { return streams_.get(); }
  ScratchMemory* scratch() const { return scratch_.get(); }

  // The calling thread's calls go to this GPU.
  absl::Status MakeCurrent() const;
  // A tensor of zeros, which takes so many bytes. ResourceExhausted: the GPU has not that much memory.
  absl::StatusOr<DeviceTensor> Allocate(Shape shape, ElementType type, int64_t bytes);
  // Begins an operation that uses these tensors; empty ones are left out.
  absl::StatusOr<Work> Begin(Tensors reads, Tensors writes);

 private:
  const Device device_;
  // In this order, because the streams' end waits for all work on the memory.
  std::unique_ptr<MemoryPool> pool_;
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<ScratchMemory> scratch_;
};

// The memory of a tensor that a DeviceContext has allocated.
const MemoryPool::Block* BlockOf(const DeviceTensor& tensor);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_DEVICE_CONTEXT_H_
