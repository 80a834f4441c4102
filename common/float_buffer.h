#ifndef RUBATO_COMMON_FLOAT_BUFFER_H_
#define RUBATO_COMMON_FLOAT_BUFFER_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace rubato {

// A fixed-size array of float32 that starts at a multiple of 64 bytes, zero at first. Shared through FloatBuffer::Ptr;
// the last owner frees it. Access to the elements is the owners' to order.
class FloatBuffer {
 public:
  using Ptr = std::shared_ptr<FloatBuffer>;

  static Ptr Allocate(int64_t size) { return std::make_shared<FloatBuffer>(size); }

  explicit FloatBuffer(int64_t size)
      : size_(size), data_(static_cast<float*>(std::aligned_alloc(64, (size * sizeof(float) + 63) / 64 * 64 + 64))) {
    std::memset(data_, 0, size * sizeof(float));
  }
  ~FloatBuffer() { std::free(data_); }
  FloatBuffer(const FloatBuffer&) = delete;
  FloatBuffer& operator=(const FloatBuffer&) = delete;

  float* data() { return data_; }
  const float* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  const int64_t size_;
  float* const data_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_FLOAT_BUFFER_H_
