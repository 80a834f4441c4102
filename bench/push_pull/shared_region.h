#ifndef RUBATO_BENCH_PUSH_PULL_SHARED_REGION_H_
#define RUBATO_BENCH_PUSH_PULL_SHARED_REGION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace rubato::bench {

// A counter in shared memory on which another process can wait.
class SharedCounter {
 public:
  uint32_t Get() const { return value_.load(std::memory_order_acquire); }
  // Called by one process alone. Wakes whoever waits.
  void Increment();
  // Waits until the value is another than `old`; returns it.
  uint32_t AwaitChange(uint32_t old);

 private:
  alignas(64) std::atomic<uint32_t> value_;
  std::atomic<uint32_t> waiters_;
};

// Memory that two processes map: one creates it, the other opens it by what Create's address() says. Zero at first.
class SharedRegion {
 public:
  static absl::StatusOr<std::unique_ptr<SharedRegion>> Create(size_t bytes);
  static absl::StatusOr<std::unique_ptr<SharedRegion>> Open(const std::string& address, size_t bytes);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  char* data() { return static_cast<char*>(data_); }
  // For Open in another process of the same user, as long as this one lives.
  std::string address() const;

 private:
  SharedRegion(int descriptor, void* data, size_t bytes) : descriptor_(descriptor), data_(data), bytes_(bytes) {}
  static absl::StatusOr<std::unique_ptr<SharedRegion>> Map(int descriptor, size_t bytes);

  const int descriptor_;
  void* const data_;
  const size_t bytes_;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_SHARED_REGION_H_
