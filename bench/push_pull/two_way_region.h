#ifndef RUBATO_BENCH_PUSH_PULL_TWO_WAY_REGION_H_
#define RUBATO_BENCH_PUSH_PULL_TWO_WAY_REGION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

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

// Memory that two processes map and both write: one creates it, the other opens it by what address() says. Zero at
// first. It is what the system's own shared memory (common/shared_memory) is measured against and not to be: that one
// is sealed, so that no peer can write to it, while here each side wakes the other through SharedCounters, which the
// one that waits writes too. So there is no message between the sides at all, the least that two processes can do.
// Not for peers that are not trusted.
class TwoWayRegion {
 public:
  static absl::StatusOr<std::unique_ptr<TwoWayRegion>> Create(size_t bytes);
  static absl::StatusOr<std::unique_ptr<TwoWayRegion>> Open(const std::string& address, size_t bytes);
  ~TwoWayRegion();
  TwoWayRegion(const TwoWayRegion&) = delete;
  TwoWayRegion& operator=(const TwoWayRegion&) = delete;

  char* data() { return static_cast<char*>(data_); }
  // For Open in another process of the same user, as long as this one lives.
  std::string address() const;

 private:
  TwoWayRegion(FileDescriptor descriptor, void* data, size_t bytes)
      : descriptor_(std::move(descriptor)), data_(data), bytes_(bytes) {}
  static absl::StatusOr<std::unique_ptr<TwoWayRegion>> Map(FileDescriptor descriptor, size_t bytes);

  const FileDescriptor descriptor_;
  void* const data_;
  const size_t bytes_;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_TWO_WAY_REGION_H_
