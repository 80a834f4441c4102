#include "common/shape.h"

#include "absl/strings/str_join.h"

namespace rubato {

int64_t NumElements(const Shape& shape) {
  int64_t product = 1;
  for (int64_t dimension : shape) product *= dimension;
  return product;
}

std::optional<int64_t> BoundedProduct(const Shape& shape, int64_t limit) {
  int64_t product = 1;
  for (int64_t dimension : shape) {
    if (dimension < 1 || dimension > limit / product) return std::nullopt;
    product *= dimension;
  }
  return product;
}

std::string ShapeText(const Shape& shape) { return shape.empty() ? "scalar" : absl::StrJoin(shape, "x"); }

}  // namespace rubato
