#ifndef RUBATO_KERNELS_CUDA_INTERACTION_H_
#define RUBATO_KERNELS_CUDA_INTERACTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/device_tensor.h"

// Kernels behind the operations of Backend on vectors side by side, on device memory. Internal: a launch was refused.
namespace rubato::cuda {

// Rows of `vectors` of `width`, of an activation's type.
struct InteractionShape {
  ElementType type = ElementType::kFloat32;
  int64_t rows = 0;
  int64_t vectors = 0;
  int64_t width = 0;
};

absl::Status DotInteraction(Stream stream, const InteractionShape& shape, const void* x, void* y);
absl::Status DotInteractionBackward(Stream stream, const InteractionShape& shape, const void* x, const void* dy,
                                    void* dx);
absl::Status FactorizationMachine(Stream stream, const InteractionShape& shape, const void* x, void* y);
absl::Status FactorizationMachineBackward(Stream stream, const InteractionShape& shape, const void* x, const void* dy,
                                          void* dx);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_INTERACTION_H_
