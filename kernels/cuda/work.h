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

// One operation while it is enqueued in kCompute: its stream, and device memory that is its own until its kernels have
// run. What follows in the stream may have the memory afterwards, so a Work ends before the next begins.
class Work {
 public:
  Work(MemoryPool* pool, Streams* streams) : pool_(pool), streams_(streams) {}

  Stream stream() const { return streams_->stream(kCompute); }

  // So many elements with anything in them. ResourceExhausted: the device has not that much memory.
  template <typename T>
  absl::StatusOr<T*> Scratch(int64_t elements) {
    absl::StatusOr<void*> memory = Take(elements * static_cast<int64_t>(sizeof(T)));
    if (!memory.ok()) return memory.status();
    return static_cast<T*>(*memory);
  }

 private:
  absl::StatusOr<void*> Take(int64_t bytes);

  MemoryPool* const pool_;
  Streams* const streams_;
  std::vector<std::unique_ptr<MemoryPool::Block>> blocks_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_WORK_H_
