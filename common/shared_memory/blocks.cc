#include "common/shared_memory/blocks.h"

#include <algorithm>
#include <bit>

namespace rubato {
namespace {

// So that a few sizes serve all small messages.
constexpr size_t kSmallestBlock = 4096;

}  // namespace

std::shared_ptr<void> SharedBlocks::Take(size_t bytes) {
  if (bytes > bytes_max_) return nullptr;
  const size_t size = std::bit_ceil(std::max(bytes, kSmallestBlock));
  void* block = nullptr;
  {
    MutexLock lock(mu_);
    std::vector<void*>& free = free_[size];
    if (!free.empty()) {
      block = free.back();
      free.pop_back();
    } else if (size <= bytes_max_ - taken_) {
      block = arena_->Allocate(size);
      if (block != nullptr) taken_ += size;
    }
  }
  if (block == nullptr) return nullptr;
  return std::shared_ptr<void>(block, [self = shared_from_this(), size](void* done) { self->Return(done, size); });
}

void SharedBlocks::Return(void* block, size_t size) {
  MutexLock lock(mu_);
  free_[size].push_back(block);
}

}  // namespace rubato
