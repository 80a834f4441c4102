#ifndef RUBATO_BENCH_GPU_STEP_FLOOR_H_
#define RUBATO_BENCH_GPU_STEP_FLOOR_H_

#include <cstdint>

#include "bench/gpu/device_timing.h"
#include "common/model_spec.h"
#include "kernels/device_tensor.h"

namespace rubato::bench {

// What a layer's pass over a batch multiplies and adds, and what it reads and writes where nothing is read twice and
// only layers' outputs, their gradients, weights and weights' gradients are in memory.
struct PassWork {
  double flops = 0, bytes = 0;
};
struct LayerWork {
  PassWork forward, backward;
};
LayerWork WorkOf(const ModelSpec& spec, const LayerSpec& layer, int64_t batch, ElementType activations);

// Seconds that a step takes at least where layers run one after the other, each at the rate of products or at that of
// copies, whichever takes longer (the roofline of Williams, Waterman and Patterson 2009).
double StepFloor(const ModelSpec& spec, int64_t batch, ElementType activations, const DeviceRates& rates);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_GPU_STEP_FLOOR_H_
