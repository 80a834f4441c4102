#ifndef RUBATO_KERNELS_OPTIMIZER_REDUCE_LOOPS_H_
#define RUBATO_KERNELS_OPTIMIZER_REDUCE_LOOPS_H_

#include <cstdint>
#include <cstring>

#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/gradient_reader.h"
#include "kernels/optimizer/isa.h"

// The loops that add up contributions, inlined into a function for each instruction set.

namespace rubato::update_loops {

// Elements that are worked on together. 256 (1 KiB) was the fastest of 256, 512 and 1024: with longer blocks the
// processor starts to fetch the next contribution too late. A multiple of the codecs' blocks.
inline constexpr int64_t kBlock = 256;

// Contributions that are added up in one loop, so that the sum is not stored and loaded again for each.
inline constexpr int kTogether = 4;

// g = weight * data, or with kAdd g += weight * data.
template <bool kAdd>
RUBATO_KERNEL_BODY void AddOne(const void* data, float weight, int n, float* __restrict g) {
  const UnalignedFloat* __restrict d = static_cast<const UnalignedFloat*>(data);
  for (int i = 0; i < n; ++i) g[i] = kAdd ? g[i] + weight * d[i] : weight * d[i];
}

// The same with four contributions, in order.
template <bool kAdd>
RUBATO_KERNEL_BODY void AddFour(const void* const* data, const EncodedGradient* gradients, int n, float* __restrict g) {
  const UnalignedFloat* __restrict d0 = static_cast<const UnalignedFloat*>(data[0]);
  const UnalignedFloat* __restrict d1 = static_cast<const UnalignedFloat*>(data[1]);
  const UnalignedFloat* __restrict d2 = static_cast<const UnalignedFloat*>(data[2]);
  const UnalignedFloat* __restrict d3 = static_cast<const UnalignedFloat*>(data[3]);
  const float w0 = gradients[0].weight, w1 = gradients[1].weight, w2 = gradients[2].weight, w3 = gradients[3].weight;
  for (int i = 0; i < n; ++i) {
    const float first = kAdd ? g[i] + w0 * d0[i] : w0 * d0[i];
    g[i] = ((first + w1 * d1[i]) + w2 * d2[i]) + w3 * d3[i];
  }
}

// The next n elements of all contributions, reduced to `g`. `scratch` has room for kTogether blocks.
RUBATO_KERNEL_BODY void Reduce(const EncodedGradient* gradients, int count, GradientReader* readers, int n,
                               float* scratch, float* __restrict g) {
  if (count == 0) std::memset(g, 0, sizeof(float) * n);
  int k = 0;
  for (; k + kTogether <= count; k += kTogether) {
    const void* data[kTogether];
    for (int j = 0; j < kTogether; ++j) data[j] = readers[k + j].Next(n, scratch + j * kBlock);
    k == 0 ? AddFour<false>(data, gradients, n, g) : AddFour<true>(data, gradients + k, n, g);
  }
  for (; k < count; ++k) {
    const void* data = readers[k].Next(n, scratch);
    k == 0 ? AddOne<false>(data, gradients[k].weight, n, g) : AddOne<true>(data, gradients[k].weight, n, g);
  }
}

// Sums that are independent of each other, as many as the longest vector has floats.
inline constexpr int kLanes = 16;

// Of n elements of a block. Added up in float32.
RUBATO_KERNEL_BODY double SumOfSquares(const void* data, int n) {
  const UnalignedFloat* d = static_cast<const UnalignedFloat*>(data);
  float lanes[kLanes] = {};
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += d[i + lane] * d[i + lane];
  }
  for (int lane = 0; i + lane < n; ++lane) lanes[lane] += d[i + lane] * d[i + lane];
  double sum = 0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

}  // namespace rubato::update_loops

#endif  // RUBATO_KERNELS_OPTIMIZER_REDUCE_LOOPS_H_
