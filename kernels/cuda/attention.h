#ifndef RUBATO_KERNELS_CUDA_ATTENTION_H_
#define RUBATO_KERNELS_CUDA_ATTENTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/device_tensor.h"
#include "kernels/geometry.h"

// Kernels between the matrix products of Backend::CausalAttention, on device memory. A pair is one head of one example;
// pairs are numbered example by example. Operands and activations have `type`, an activation's. Internal: the launch
// was refused.
namespace rubato::cuda {

// `columns` of each position from `first` on, such as a head's queries in qkv.
struct HeadSlice {
  int64_t sequence = 0, heads = 0, head_width = 0;
  // Elements from a position to the next, and before the first head's.
  int64_t position_stride = 0, first = 0;
};

// to [pairs, sequence, head_width].
absl::Status GatherHeads(Stream stream, const HeadSlice& slice, int64_t batch, ElementType type, const void* from,
                         void* to);
// The reverse, from float32.
absl::Status ScatterHeads(Stream stream, const HeadSlice& slice, int64_t batch, const float* from, ElementType type,
                          void* to);

// Rows [begin, begin + rows) of each pair's scores, [pairs, rows, columns]: the keys before begin + rows.
struct ScoreBlock {
  int64_t pairs = 0, sequence = 0, begin = 0, rows = 0;
  int64_t columns() const { return begin + rows; }
};

// probabilities (of `type`) = softmax of each row of scores over the positions up to its own, 0 after it;
// log_sum_exp [pairs, sequence]. Sums are float32.
absl::Status CausalSoftmax(Stream stream, const ScoreBlock& block, ElementType type, const float* scores,
                           void* probabilities, float* log_sum_exp);
// For the backward pass: probabilities from scores and log_sum_exp, and dscores = probabilities * (dprobabilities -
// mean), both of `type`. means [pairs, sequence].
absl::Status CausalSoftmaxBackward(Stream stream, const ScoreBlock& block, ElementType type, const float* scores,
                                   const float* log_sum_exp, const float* dprobabilities, const float* means,
                                   void* probabilities, void* dscores);
// means [pairs, sequence] = the dot product of y and dy [batch, sequence, heads, head_width] in each head.
absl::Status HeadDots(Stream stream, const AttentionGeometry& geometry, int64_t batch, ElementType type, const void* y,
                      const void* dy, float* means);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_ATTENTION_H_
