#ifndef RUBATO_COMMON_SHARED_MEMORY_BLOCKS_H_
#define RUBATO_COMMON_SHARED_MEMORY_BLOCKS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "common/shared_memory/arena.h"

namespace rubato {

// Room for keys and rows of tables in the region of a task whose model has some. Pages take up memory once they are
// used; what does not fit goes over TCP.
inline constexpr size_t kRowRoomBytes = size_t{4} << 30;

// Memory of an arena that is used again and again, for what has another size in every message. Thread-safe.
//
//   auto blocks = SharedBlocks::Create(arena, kRowRoomBytes);
//   std::shared_ptr<float[]> rows = ArrayIn<float>(blocks.get(), count);
class SharedBlocks : public std::enable_shared_from_this<SharedBlocks> {
 public:
  // Takes at most `bytes_max` of the arena, as they are needed, and keeps them.
  static std::shared_ptr<SharedBlocks> Create(std::shared_ptr<SharedArena> arena, size_t bytes_max) {
    return std::shared_ptr<SharedBlocks>(new SharedBlocks(std::move(arena), bytes_max));
  }

  // `bytes` bytes of any contents, at a multiple of SharedArena::kAlignment, which come back when nobody holds them;
  // null when there is no room.
  std::shared_ptr<void> Take(size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

  const SharedRegion& region() const { return arena_->region(); }

 private:
  SharedBlocks(std::shared_ptr<SharedArena> arena, size_t bytes_max)
      : arena_(std::move(arena)), bytes_max_(bytes_max) {}
  void Return(void* block, size_t size) ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<SharedArena> arena_;
  const size_t bytes_max_;
  Mutex mu_;
  // Of the arena.
  size_t taken_ ABSL_GUARDED_BY(mu_) = 0;
  // By size, a power of two. The last one was used last.
  std::map<size_t, std::vector<void*>> free_ ABSL_GUARDED_BY(mu_);
};

// An array of any contents: one of the blocks if there is room, or if there is none, or `blocks` is null, on the heap.
template <typename T>
std::shared_ptr<T[]> ArrayIn(SharedBlocks* blocks, size_t count) {
  const std::shared_ptr<void> block = blocks == nullptr ? nullptr : blocks->Take(count * sizeof(T));
  if (block == nullptr) return std::make_shared_for_overwrite<T[]>(count);
  return std::shared_ptr<T[]>(block, static_cast<T*>(block.get()));
}

}  // namespace rubato

#endif  // RUBATO_COMMON_SHARED_MEMORY_BLOCKS_H_
