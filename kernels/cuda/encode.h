#ifndef RUBATO_KERNELS_CUDA_ENCODE_H_
#define RUBATO_KERNELS_CUDA_ENCODE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/work.h"

// Encode of kernels/codec on device memory, with the same bytes: see there, and docs/formats.md, "Codecs". `out` is
// a multiple of 4, has room for MaxEncodedBytes, and overlaps nothing. Internal: a launch was refused.
// ResourceExhausted: no scratch memory.
namespace rubato::cuda {

absl::Status EncodeBf16(Stream stream, const float* values, int64_t n, uint8_t* out);
absl::Status EncodeFp16(Stream stream, const float* values, int64_t n, uint8_t* out);
absl::Status EncodeInt8(Stream stream, const float* values, int64_t n, uint64_t seed, uint64_t random_stream,
                        uint8_t* out);
// `residual` [n] is added to the values and becomes what was lost.
absl::Status EncodeOneBit(Stream stream, const float* values, int64_t n, float* residual, uint8_t* out);
// `count` of the n elements, 0 <= count <= n < 2^31.
absl::Status EncodeTopK(Work& work, const float* values, int64_t n, int64_t count, float* residual, uint8_t* out);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_ENCODE_H_
