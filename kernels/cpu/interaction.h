#ifndef RUBATO_KERNELS_CPU_INTERACTION_H_
#define RUBATO_KERNELS_CPU_INTERACTION_H_

#include <cstdint>

// The loops behind the operations of Backend on vectors side by side, in host memory: rows of `vectors` of `width`.
// Each sum has an order of its own, which the number of rows does not change.
namespace rubato::cpu {

struct InteractionSizes {
  int64_t rows = 0;
  int64_t vectors = 0;
  int64_t width = 0;

  int64_t inputs() const { return vectors * width; }
  int64_t dots() const { return vectors * (vectors - 1) / 2; }
};

void DotInteraction(const InteractionSizes& sizes, const float* x, float* y);
void DotInteractionBackward(const InteractionSizes& sizes, const float* x, const float* dy, float* dx);
void FactorizationMachine(const InteractionSizes& sizes, const float* x, float* y);
void FactorizationMachineBackward(const InteractionSizes& sizes, const float* x, const float* dy, float* dx);

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_INTERACTION_H_
