#ifndef RUBATO_KERNELS_CUDA_EMBEDDING_H_
#define RUBATO_KERNELS_CUDA_EMBEDDING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/work.h"

// Kernels behind Backend::Embed and its gradient, on device memory. Indices are in [0, entries); y and dy have `type`,
// an activation's. Internal: a launch was refused. ResourceExhausted: no scratch memory.
namespace rubato::cuda {

// y [n, width] = rows of table.
absl::Status Embed(Stream stream, const float* table, int64_t width, const int32_t* indices, int64_t n,
                   ElementType type, void* y);
// dtable [entries, width] = sums of rows of dy [n, width], those of an entry added in order. n is below 2^31.
absl::Status EmbedBackward(Work& work, const int32_t* indices, int64_t n, ElementType type, const void* dy,
                           int64_t entries, int64_t width, bool accumulate, float* dtable);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_EMBEDDING_H_
