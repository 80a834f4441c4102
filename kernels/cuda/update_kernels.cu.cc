#include "kernels/cuda/update_kernels.h"

#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

// As the loops of kernels/optimizer/update_loops.h.
template <UpdateKind kKind>
__global__ void UpdateKernel(UpdateNumbers r, const float* gradient, int64_t n, float* w, float* first, float* second) {
  for (int64_t i = First(); i < n; i += Stride()) {
    const float before = w[i];
    const float g = r.l2 != 0 ? gradient[i] + r.l2 * before : gradient[i];
    float step = r.learning_rate * g;
    if constexpr (kKind == UpdateKind::kMomentum) {
      first[i] = r.momentum * first[i] + g;
      step = r.learning_rate * first[i];
    } else if constexpr (kKind == UpdateKind::kNesterov) {
      first[i] = r.momentum * first[i] + g;
      step = r.learning_rate * (g + r.momentum * first[i]);
    } else if constexpr (kKind == UpdateKind::kAdaGrad) {
      first[i] += g * g;
      step = r.learning_rate * g / (sqrtf(first[i]) + r.epsilon);
    } else if constexpr (kKind == UpdateKind::kRmsProp) {
      first[i] = r.beta2 * first[i] + r.beta2_complement * (g * g);
      step = r.learning_rate * g / (sqrtf(first[i]) + r.epsilon);
    } else if constexpr (kKind == UpdateKind::kAdam) {
      first[i] = r.beta1 * first[i] + r.beta1_complement * g;
      second[i] = r.beta2 * second[i] + r.beta2_complement * (g * g);
      step = r.learning_rate * first[i] / (sqrtf(second[i]) * r.second_moment_scale + r.epsilon);
    }
    w[i] = r.shrink * before - step;
  }
}

template <UpdateKind kKind>
absl::Status Launch(Stream stream, const UpdateNumbers& rule, const float* gradient, int64_t n, float* weights,
                    float* first, float* second) {
  RUBATO_CUDA_LAUNCH(UpdateKernel<kKind>, Blocks(n), kThreads, stream, rule, gradient, n, weights, first, second);
  return absl::OkStatus();
}

}  // namespace

absl::Status LaunchUpdate(Stream stream, UpdateKind kind, const UpdateNumbers& rule, const float* gradient, int64_t n,
                          float* weights, float* first, float* second) {
  switch (kind) {
    case UpdateKind::kMomentum:
      return Launch<UpdateKind::kMomentum>(stream, rule, gradient, n, weights, first, second);
    case UpdateKind::kNesterov:
      return Launch<UpdateKind::kNesterov>(stream, rule, gradient, n, weights, first, second);
    case UpdateKind::kAdaGrad:
      return Launch<UpdateKind::kAdaGrad>(stream, rule, gradient, n, weights, first, second);
    case UpdateKind::kRmsProp:
      return Launch<UpdateKind::kRmsProp>(stream, rule, gradient, n, weights, first, second);
    case UpdateKind::kAdam:
      return Launch<UpdateKind::kAdam>(stream, rule, gradient, n, weights, first, second);
    case UpdateKind::kSgd:
      break;
  }
  return Launch<UpdateKind::kSgd>(stream, rule, gradient, n, weights, first, second);
}

}  // namespace rubato::cuda
