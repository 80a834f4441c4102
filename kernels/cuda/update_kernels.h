#ifndef RUBATO_KERNELS_CUDA_UPDATE_KERNELS_H_
#define RUBATO_KERNELS_CUDA_UPDATE_KERNELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/stream.h"

// The seam between ApplyUpdate, which knows the config's messages, and its kernels, which are compiled without them.
namespace rubato::cuda {

enum class UpdateKind { kSgd, kMomentum, kNesterov, kAdaGrad, kRmsProp, kAdam };

// UpdateRule's numbers.
struct UpdateNumbers {
  float learning_rate, momentum, beta1, beta1_complement, beta2, beta2_complement, epsilon, second_moment_scale, l2,
      shrink;
};

absl::Status LaunchUpdate(Stream stream, UpdateKind kind, const UpdateNumbers& rule, const float* gradient, int64_t n,
                          float* weights, float* first, float* second);

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_UPDATE_KERNELS_H_
