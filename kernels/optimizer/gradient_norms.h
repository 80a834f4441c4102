#ifndef RUBATO_KERNELS_OPTIMIZER_GRADIENT_NORMS_H_
#define RUBATO_KERNELS_OPTIMIZER_GRADIENT_NORMS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/isa.h"

namespace rubato {

// A gradient in 64 dimensions: element i is added to dimension i mod 64, its sign turned around or not by a random bit
// of i / 64 (a count sketch: Charikar, Chen and Farach-Colton 2002). The product of two sketches with the same signs
// has the gradients' product as its expected value, and about an eighth of their norms' product as its standard
// deviation.
using GradientSketch = std::array<float, 64>;

// Of gradients that are reduced to one.
struct GradientNorms {
  // Of each contribution as it was decoded, without its weight, in their order: the square of its Euclidean norm, and
  // its sketch.
  std::vector<double> squares;
  std::vector<GradientSketch> sketches;
  // Of the norm of the weighted sum that ReduceAndApply makes of them.
  double sum_square = 0;
};

// Of `count` contributions of n elements each. `stream` chooses the signs. One pass over memory. Products are added up
// in float32 within a block of 256 elements, so that one of 1e19 or more gives infinity, and in float64 beyond. The
// same bits on every processor and however messages are cut. Keeps no state: safe from several threads.
GradientNorms MeasureNorms(const EncodedGradient* contributions, int count, int64_t n, uint64_t stream);

// The same on a given instruction set, which this processor supports; for tests.
GradientNorms MeasureNormsOn(Isa isa, const EncodedGradient* contributions, int count, int64_t n, uint64_t stream);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_GRADIENT_NORMS_H_
