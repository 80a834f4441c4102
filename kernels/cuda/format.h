#ifndef RUBATO_KERNELS_CUDA_FORMAT_H_
#define RUBATO_KERNELS_CUDA_FORMAT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/stream.h"

namespace rubato::cuda {

// How the elements of a product's operands are stored.
enum class ElementFormat { kFloat32, kBf16, kFp16 };

inline int64_t FormatBytes(ElementFormat format) { return format == ElementFormat::kFloat32 ? 4 : 2; }

// to [n] in this format, rounded to nearest even; what is too large becomes infinite. Internal: the launch was refused.
absl::Status Convert(Stream stream, ElementFormat format, const float* from, int64_t n, void* to);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_FORMAT_H_
