#ifndef RUBATO_KERNELS_DEVICE_TENSOR_H_
#define RUBATO_KERNELS_DEVICE_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/shape.h"

namespace rubato {

enum class ElementType { kFloat32, kInt32, kFloat64, kBfloat16, kFloat16 };

// Bytes of one element.
int64_t ElementBytes(ElementType type);
// "float32", for messages.
const char* TypeName(ElementType type);

// One allocation on a device. Each backend derives a class that frees it.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  // An address on the device, for its backend alone: the host may not be able to read it.
  void* address() const { return address_; }

 protected:
  explicit DeviceBuffer(void* address) : address_(address) {}

 private:
  void* const address_;
};

// A dense row-major array in a device's memory: a shape over the beginning of a reference-counted buffer. A handle,
// cheap to copy; copies and views share the elements. Backend::Allocate makes them. An empty handle stands for "no
// tensor" if an argument may be left out. Handles to one buffer may live in several threads.
class DeviceTensor {
 public:
  DeviceTensor() = default;
  // `buffer` has room for the whole shape.
  DeviceTensor(std::shared_ptr<const DeviceBuffer> buffer, Shape shape, ElementType type)
      : buffer_(std::move(buffer)), shape_(std::move(shape)), type_(type), elements_(NumElements(shape_)) {}

  bool empty() const { return buffer_ == nullptr; }
  const Shape& shape() const { return shape_; }
  ElementType type() const { return type_; }
  int64_t elements() const { return elements_; }
  // The first dimension, usually examples, and the product of all others.
  int64_t rows() const { return shape_.empty() ? 1 : shape_[0]; }
  int64_t columns() const { return rows() == 0 ? 0 : elements_ / rows(); }

  // A view of the first `rows` along the first dimension, at most as many as there are.
  DeviceTensor Rows(int64_t rows) const;
  // A view with another shape and as many elements.
  DeviceTensor Reshaped(Shape shape) const;

  // What the elements are in; null if there are none.
  const DeviceBuffer* buffer() const { return buffer_.get(); }
  // For backends alone: the device address of the first element.
  template <typename T>
  T* data() const {
    return buffer_ == nullptr ? nullptr : static_cast<T*>(buffer_->address());
  }

  // "float32 [64x784]", for messages.
  std::string Description() const;

 private:
  std::shared_ptr<const DeviceBuffer> buffer_;
  Shape shape_;
  ElementType type_ = ElementType::kFloat32;
  int64_t elements_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_DEVICE_TENSOR_H_
