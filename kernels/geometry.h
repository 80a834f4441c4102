#ifndef RUBATO_KERNELS_GEOMETRY_H_
#define RUBATO_KERNELS_GEOMETRY_H_

#include <compare>
#include <cstdint>

#include "common/shape.h"

namespace rubato {

// A two-dimensional cross-correlation with a square kernel over images in NCHW order. Everything but the batch size.
struct Conv2dGeometry {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t filters = 0;
  int64_t kernel = 0;
  int64_t stride = 1;
  int64_t padding = 0;  // Zeros on each of the four sides.

  int64_t output_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  int64_t output_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  Shape InputShape(int64_t examples) const { return {examples, channels, height, width}; }
  Shape OutputShape(int64_t examples) const { return {examples, filters, output_height(), output_width()}; }
  Shape WeightShape() const { return {filters, channels, kernel, kernel}; }

  friend auto operator<=>(const Conv2dGeometry&, const Conv2dGeometry&) = default;
};

// Square windows over each channel of images in NCHW order, without padding. Everything but the batch size.
struct Pool2dGeometry {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t window = 1;
  int64_t stride = 1;

  int64_t output_height() const { return (height - window) / stride + 1; }
  int64_t output_width() const { return (width - window) / stride + 1; }
  Shape InputShape(int64_t examples) const { return {examples, channels, height, width}; }
  Shape OutputShape(int64_t examples) const { return {examples, channels, output_height(), output_width()}; }
};

// Self-attention over sequences of positions. Everything but the batch size.
struct AttentionGeometry {
  int64_t sequence = 0;
  int64_t heads = 1;
  int64_t head_width = 0;

  int64_t width() const { return heads * head_width; }
  // A position's queries of all heads, then its keys, then its values.
  Shape InputShape(int64_t examples) const { return {examples, sequence, 3 * width()}; }
  Shape OutputShape(int64_t examples) const { return {examples, sequence, width()}; }
  Shape LogSumExpShape(int64_t examples) const { return {examples, heads, sequence}; }
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_GEOMETRY_H_
