#include "server/slot_pool.h"

#include <chrono>
#include <utility>

namespace rubato::server {

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
  bytes_ += size * static_cast<int64_t>(sizeof(float));
  return std::make_unique<FloatBuffer>(size);
}

void SlotPool::Return(std::unique_ptr<FloatBuffer> array) {
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
