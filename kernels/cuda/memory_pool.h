#ifndef RUBATO_KERNELS_CUDA_MEMORY_POOL_H_
#define RUBATO_KERNELS_CUDA_MEMORY_POOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "kernels/cuda/access_order.h"

namespace rubato::cuda {

// Memory that was asked for from a device, given out in blocks and kept for the next of about the same size: asking the
// device waits for all of its work. A block remembers who used it last, so the next owner's work is put after that.
//
// Allocate and the destruction of blocks by any thread. Blocks keep what they need of the pool, and give their memory
// back to the device if the pool is gone.
class MemoryPool {
 public:
  // Where memory comes from. `allocate` returns ResourceExhausted if there is no more. Called under the pool's lock.
  struct Source {
    std::function<absl::StatusOr<void*>(int64_t bytes)> allocate;
    std::function<void(void* memory)> free;
  };

  class Block {
   public:
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    void* address() const { return address_; }
    int64_t bytes() const { return bytes_; }
    // For the backend's thread. Part of the memory's history and not of its content, hence mutable.
    Accesses& accesses() const { return accesses_; }

   private:
    friend class MemoryPool;
    struct Shared;
    Block(std::shared_ptr<Shared> shared, void* address, int64_t bytes, const Accesses& accesses)
        : shared_(std::move(shared)), address_(address), bytes_(bytes), accesses_(accesses) {}

    const std::shared_ptr<Shared> shared_;
    void* const address_;
    const int64_t bytes_;
    mutable Accesses accesses_;
  };

  explicit MemoryPool(Source source);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // One piece of memory that blocks come from while it has room, so that they need not be asked for one by one.
  // ResourceExhausted: there is no such piece, also after all unused blocks were given back.
  absl::Status Reserve(int64_t bytes);

  // At least so many bytes, at a multiple of 256, with anything in them. ResourceExhausted: there is no room, also
  // after all unused blocks were given back.
  absl::StatusOr<std::unique_ptr<Block>> Allocate(int64_t bytes);

  // Of the blocks that wait for an owner, and of what is reserved for more.
  int64_t unused_bytes() const;

 private:
  const std::shared_ptr<Block::Shared> shared_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_MEMORY_POOL_H_
