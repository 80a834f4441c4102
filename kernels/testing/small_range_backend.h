#ifndef RUBATO_KERNELS_TESTING_SMALL_RANGE_BACKEND_H_
#define RUBATO_KERNELS_TESTING_SMALL_RANGE_BACKEND_H_

#include <limits>
#include <memory>

#include "kernels/cpu/cpu_operations.h"
#include "kernels/testing/deferred_backend.h"

namespace rubato {

// A device whose numbers end early: if a model scales its mean loss by more than `largest_scale`, gradients
// overflow.
class SmallRangeBackend : public DeferredBackend {
 public:
  explicit SmallRangeBackend(float largest_scale)
      : DeferredBackend(std::make_unique<SmallRangeOperations>(largest_scale)) {}

 private:
  class SmallRangeOperations : public CpuOperations {
   public:
    explicit SmallRangeOperations(float largest_scale) : CpuOperations(1), largest_scale_(largest_scale) {}

    absl::Status SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes, float gradient_scale,
                                     const DeviceTensor& dlogits, const DeviceTensor& sums) override {
      absl::Status status = CpuOperations::SoftmaxCrossEntropy(logits, classes, gradient_scale, dlogits, sums);
      // The mean is over the rows. Evaluation has no gradient.
      const float scale = gradient_scale * static_cast<float>(logits.rows());
      if (!status.ok() || dlogits.empty() || scale <= largest_scale_) return status;
      return Fill(std::numeric_limits<float>::infinity(), dlogits);
    }

   private:
    const float largest_scale_;
  };
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_TESTING_SMALL_RANGE_BACKEND_H_
