#ifndef RUBATO_KERNELS_CUDA_WORK_H_
#define RUBATO_KERNELS_CUDA_WORK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/memory_pool.h"
#include "kernels/cuda/stream.h"
#include "kernels/cuda/streams.h"

namespace rubato::cuda {

// Device memory that the operations in kCompute have one after the other, each until its kernels have run. It grows to
// what the largest of them needs, and is at the same addresses from then on.
class ScratchMemory {
 public:
  // Both outlive it.
  ScratchMemory(MemoryPool* pool, Streams* streams) : pool_(pool), streams_(streams) {}

  // Room for so many bytes from the start. ResourceExhausted: the device has not that much memory.
  absl::Status Reserve(int64_t bytes);
  // An operation begins, in Streams' order: all memory is its own.
  absl::Status Begin();
  // Makes room for what the last operation lacked. By itself before work is recorded, else with the next Begin.
  absl::Status Grow();

  // So many bytes, at a multiple of 256. ResourceExhausted: the device has not that much memory. FailedPrecondition:
  // work is being recorded, and this is more than there is so far.
  absl::StatusOr<void*> Take(int64_t bytes);

  // For who uses it later, as a replayed graph does: null if nobody has needed any.
  std::shared_ptr<const MemoryPool::Block> memory() const { return memory_; }

 private:
  MemoryPool* const pool_;
  Streams* const streams_;
  std::shared_ptr<const MemoryPool::Block> memory_;
  // Of the operation that is being enqueued: bytes of memory_, bytes in all, and what memory_ has no room for.
  int64_t used_ = 0, needed_ = 0;
  std::vector<std::unique_ptr<MemoryPool::Block>> overflow_;
};

// One operation while it is enqueued in kCompute: its stream, and scratch memory. A Work ends before the next begins.
class Work {
 public:
  Work(Stream stream, ScratchMemory* scratch) : stream_(stream), scratch_(scratch) {}

  Stream stream() const { return stream_; }

  // So many elements with anything in them. ResourceExhausted: the device has not that much memory.
  template <typename T>
  absl::StatusOr<T*> Scratch(int64_t elements) {
    absl::StatusOr<void*> memory = scratch_->Take(elements * static_cast<int64_t>(sizeof(T)));
    if (!memory.ok()) return memory.status();
    return static_cast<T*>(*memory);
  }

 private:
  const Stream stream_;
  ScratchMemory* const scratch_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_WORK_H_
