#ifndef RUBATO_KERNELS_CUDA_FUSED_ATTENTION_H_
#define RUBATO_KERNELS_CUDA_FUSED_ATTENTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/format.h"
#include "kernels/cuda/stream.h"
#include "kernels/geometry.h"

// Causal attention whose scores stay on the chip, block by block (FlashAttention-2: Dao 2023), on tensors as in
// Backend::CausalAttention: memory and what is moved grow with the sequence, not with its square. Tensors have
// `type`, bfloat16 or float16, but for statistics; products add in float32. For the head widths that FusesAttention
// (workspace.h) names, 16, 32, 64 and 128. Internal: the launch was refused.
namespace rubato::cuda {

absl::Status FusedAttention(Stream stream, const AttentionGeometry& geometry, int64_t batch, ElementType type,
                            const void* qkv, void* y, float* log_sum_exp);
// No sum depends on the order of blocks: the queries' gradients and those of keys and values are computed apart, each
// with scores of its own. means [pairs, sequence]: scratch memory, for what HeadDots (attention.h) gives.
absl::Status FusedAttentionBackward(Stream stream, const AttentionGeometry& geometry, int64_t batch, ElementType type,
                                    const void* qkv, const void* y, const float* log_sum_exp, const void* dy,
                                    float* means, void* dqkv);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_FUSED_ATTENTION_H_
