#ifndef RUBATO_KERNELS_CUDA_UPDATE_H_
#define RUBATO_KERNELS_CUDA_UPDATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/optimizer/update_formula.h"

namespace rubato::cuda {

// One optimizer update of n weights in device memory, with the bits of ReduceAndApply on the host for one gradient of
// weight 1: the same formula, and none of its operations fused. slots[0] and slots[1] if the rule has them
// (NumSlots). The gradient is only read. Internal: the launch was refused.
absl::Status ApplyUpdate(Stream stream, const UpdateRule& rule, const float* gradient, int64_t n, float* weights,
                         float* const* slots);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_UPDATE_H_
