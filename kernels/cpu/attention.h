#ifndef RUBATO_KERNELS_CPU_ATTENTION_H_
#define RUBATO_KERNELS_CPU_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/geometry.h"

namespace rubato::cpu {

// Backend::CausalAttention and its gradient on `batch` sequences in host memory. One head of one example at a time, in
// blocks of rows: of a block all scores are in memory, which no row's softmax has to be corrected for later. Keeps
// scratch memory in proportion to the sequence. Not thread-safe. The same bits on every call with the same number of
// threads. Internal: the library refused.
class Attention {
 public:
  explicit Attention(int threads) : threads_(threads) {}

  absl::Status Forward(const AttentionGeometry& geometry, int64_t batch, const float* qkv, float* y,
                       float* log_sum_exp);
  absl::Status Backward(const AttentionGeometry& geometry, int64_t batch, const float* qkv, const float* y,
                        const float* log_sum_exp, const float* dy, float* dqkv);

 private:
  // Packed queries (scaled by 1 / sqrt(head_width)), keys and values of a head.
  void GatherHead(const AttentionGeometry& geometry, const float* qkv);
  absl::Status HeadForward(const AttentionGeometry& geometry, float* y, float* log_sum_exp);
  absl::Status HeadBackward(const AttentionGeometry& geometry, const float* y, const float* log_sum_exp,
                            const float* dy, float* dqkv);

  const int threads_;
  // [sequence, head_width] each.
  std::vector<float> q_, k_, v_, y_, dq_, dk_, dv_, dy_;
  // [rows of a block, keys that they see].
  std::vector<float> scores_, dscores_;
};

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_ATTENTION_H_
