#include "server/slot_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/array_alignment.h"

namespace rubato::server {
namespace {

constexpr size_t kLargePage = size_t{2} << 20;
// What is not used of a block is never touched, and so takes no memory.
constexpr size_t kBlockBytes = size_t{64} << 20;

}  // namespace

FloatBuffer::Ptr SlotPool::Take(int64_t size) {
  using Clock = std::chrono::steady_clock;
  std::unique_ptr<FloatBuffer> array;
  {
    MutexLock lock(mu_);
    while (free_[size].empty() && wait_left_ > absl::ZeroDuration()) {
      const Clock::time_point begun = Clock::now();
      returned_.WaitFor(mu_, wait_left_);
      wait_left_ -= absl::FromChrono(Clock::now() - begun);
    }
    std::vector<std::unique_ptr<FloatBuffer>>& free = free_[size];
    if (free.empty()) {
      array = Make(size);
    } else {
      array = std::move(free.back());
      free.pop_back();
    }
  }
  return FloatBuffer::Ptr(array.release(), [pool = shared_from_this()](FloatBuffer* held) {
    pool->Return(std::unique_ptr<FloatBuffer>(held));
  });
}

void SlotPool::Reserve(int64_t size, int64_t count) {
  MutexLock lock(mu_);
  for (int64_t i = 0; i < count; ++i) free_[size].push_back(Make(size));
}

std::unique_ptr<FloatBuffer> SlotPool::Make(int64_t size) {
  const size_t bytes = sizeof(float) * static_cast<size_t>(size);
  bytes_ += static_cast<int64_t>(bytes);
  char* const place = bytes < kLargeArrayBytes ? nullptr : Cut(bytes);
  if (place == nullptr) return std::make_unique<FloatBuffer>(size);
  // Arrays that are held hold the pool, and so the block.
  return std::make_unique<FloatBuffer>(reinterpret_cast<float*>(place), size, nullptr);
}

char* SlotPool::Cut(size_t bytes) {
  bytes = RoundUpTo(bytes, kDiskBlock);
  if (blocks_.empty() || blocks_.back().bytes - blocks_.back().used < bytes) {
    Block block = {.bytes = std::max(kBlockBytes, RoundUpTo(bytes, kLargePage))};
    block.memory.reset(static_cast<char*>(std::aligned_alloc(kLargePage, block.bytes)));
    if (block.memory == nullptr) return nullptr;
    // Where there are no large pages, small ones do.
    madvise(block.memory.get(), block.bytes, MADV_HUGEPAGE);
    blocks_.push_back(std::move(block));
  }
  Block& block = blocks_.back();
  char* const place = block.memory.get() + block.used;
  block.used += bytes;
  return place;
}

void SlotPool::Return(std::unique_ptr<FloatBuffer> array) {
  array->ForgetCrc32();
  MutexLock lock(mu_);
  free_[array->size()].push_back(std::move(array));
  returned_.NotifyAll();
}

void SlotPool::BeginReturns() {
  MutexLock lock(mu_);
  wait_left_ = kLongestWait;
}

void SlotPool::EndReturns() {
  MutexLock lock(mu_);
  wait_left_ = absl::ZeroDuration();
  returned_.NotifyAll();
}

int64_t SlotPool::bytes() {
  MutexLock lock(mu_);
  return bytes_;
}

}  // namespace rubato::server
