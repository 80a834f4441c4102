#ifndef RUBATO_COMMON_SHAPE_H_
#define RUBATO_COMMON_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rubato {

// Dimensions of a dense row-major array, outermost first.
using Shape = std::vector<int64_t>;

// Product of the dimensions; 1 for an empty shape.
int64_t NumElements(const Shape& shape);

// The product, or nothing when a dimension is under 1 or the product is over `limit`.
std::optional<int64_t> BoundedProduct(const Shape& shape, int64_t limit);

// "16x28x28", as it appears in messages. "scalar" for an empty shape.
std::string ShapeText(const Shape& shape);

}  // namespace rubato

#endif  // RUBATO_COMMON_SHAPE_H_
