#include "kernels/device_tensor.h"

#include <cassert>

#include "absl/strings/str_cat.h"

namespace rubato {

const char* TypeName(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kFloat64:
      return "float64";
    case ElementType::kBfloat16:
      return "bfloat16";
    case ElementType::kFloat16:
      return "float16";
  }
  return "unknown";
}

int64_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat64:
      return 8;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kBfloat16:
    case ElementType::kFloat16:
      return 2;
  }
  return 0;
}

DeviceTensor DeviceTensor::Rows(int64_t rows) const {
  assert(!shape_.empty() && rows <= shape_[0]);
  Shape shape = shape_;
  shape[0] = rows;
  return DeviceTensor(buffer_, std::move(shape), type_);
}

DeviceTensor DeviceTensor::Reshaped(Shape shape) const {
  assert(NumElements(shape) == elements_);
  return DeviceTensor(buffer_, std::move(shape), type_);
}

std::string DeviceTensor::Description() const {
  return empty() ? "no tensor" : absl::StrCat(TypeName(type_), " [", ShapeText(shape_), "]");
}

}  // namespace rubato
