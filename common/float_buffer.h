#ifndef RUBATO_COMMON_FLOAT_BUFFER_H_
#define RUBATO_COMMON_FLOAT_BUFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "common/array_alignment.h"

namespace rubato {

// A fixed-size array of float32, aligned as ArrayAlignment says, zero at first. Shared through FloatBuffer::Ptr; the
// last owner frees it, or lets go of the memory's owner. Access to the elements is the owners' to order.
class FloatBuffer {
 public:
  using Ptr = std::shared_ptr<FloatBuffer>;

  static Ptr Allocate(int64_t size) { return std::make_shared<FloatBuffer>(size); }

  // In memory of somebody else's, which is zeroed: `size` floats at `data`, a multiple of 64, that nobody else uses and
  // that stay there while `owner` is held.
  static Ptr Wrap(float* data, int64_t size, std::shared_ptr<void> owner) {
    return std::make_shared<FloatBuffer>(data, size, std::move(owner));
  }

  explicit FloatBuffer(int64_t size) : size_(size), data_(Memory(size * sizeof(float))), is_own_(true) {
    std::memset(data_, 0, size * sizeof(float));
  }
  FloatBuffer(float* data, int64_t size, std::shared_ptr<void> owner)
      : size_(size), data_(data), is_own_(false), owner_(std::move(owner)) {
    std::memset(data_, 0, size * sizeof(float));
  }
  ~FloatBuffer() {
    if (is_own_) std::free(data_);
  }
  FloatBuffer(const FloatBuffer&) = delete;
  FloatBuffer& operator=(const FloatBuffer&) = delete;

  float* data() { return data_; }
  const float* data() const { return data_; }
  int64_t size() const { return size_; }

  // CRC-32 (zlib's polynomial) of the bytes, if somebody has noted it; whoever writes the elements then forgets it.
  // Safe from any thread.
  std::optional<uint32_t> crc32() const {
    const uint64_t noted = crc32_.load(std::memory_order_relaxed);
    return noted == 0 ? std::nullopt : std::optional(static_cast<uint32_t>(noted));
  }
  void NoteCrc32(uint32_t crc32) { crc32_.store(kNoted | crc32, std::memory_order_relaxed); }
  void ForgetCrc32() { crc32_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kNoted = uint64_t{1} << 32;

  static float* Memory(size_t bytes) {
    const size_t alignment = ArrayAlignment(bytes);
    return static_cast<float*>(std::aligned_alloc(alignment, RoundUpTo(bytes + 64, alignment)));
  }

  const int64_t size_;
  float* const data_;
  const bool is_own_;
  const std::shared_ptr<void> owner_;
  // Zero, or kNoted and the CRC.
  std::atomic<uint64_t> crc32_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_FLOAT_BUFFER_H_
