#ifndef RUBATO_COMMON_SHAPE_H_
#define RUBATO_COMMON_SHAPE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rubato {

// Dimensions of a dense row-major array, outermost first.
using Shape = std::vector<int64_t>;

// Product of the dimensions; 1 for an empty shape.
int64_t NumElements(const Shape& shape);

// "16x28x28", as it appears in messages. "scalar" for an empty shape.
std::string ShapeText(const Shape& shape);

}  // namespace rubato

#endif  // RUBATO_COMMON_SHAPE_H_
