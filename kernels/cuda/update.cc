#include "kernels/cuda/update.h"

#include "kernels/cuda/update_kernels.h"

namespace rubato::cuda {
namespace {

UpdateKind KindOf(v1::OptimizerConfig::Algorithm algorithm) {
  switch (algorithm) {
    case v1::OptimizerConfig::MOMENTUM:
      return UpdateKind::kMomentum;
    case v1::OptimizerConfig::NESTEROV:
      return UpdateKind::kNesterov;
    case v1::OptimizerConfig::ADAGRAD:
      return UpdateKind::kAdaGrad;
    case v1::OptimizerConfig::RMSPROP:
      return UpdateKind::kRmsProp;
    case v1::OptimizerConfig::ADAM:
    case v1::OptimizerConfig::ADAMW:
      return UpdateKind::kAdam;
    default:
      return UpdateKind::kSgd;
  }
}

}  // namespace

absl::Status ApplyUpdate(Stream stream, const UpdateRule& rule, const float* gradient, int64_t n, float* weights,
                         float* const* slots) {
  const int count = NumSlots(rule.algorithm);
  const UpdateNumbers numbers = {.learning_rate = rule.learning_rate,
                                 .momentum = rule.momentum,
                                 .beta1 = rule.beta1,
                                 .beta1_complement = rule.beta1_complement,
                                 .beta2 = rule.beta2,
                                 .beta2_complement = rule.beta2_complement,
                                 .epsilon = rule.epsilon,
                                 .second_moment_scale = rule.second_moment_scale,
                                 .l2 = rule.l2,
                                 .shrink = rule.shrink};
  return LaunchUpdate(stream, KindOf(rule.algorithm), numbers, gradient, n, weights, count > 0 ? slots[0] : nullptr,
                      count > 1 ? slots[1] : nullptr);
}

}  // namespace rubato::cuda
