#ifndef RUBATO_BENCH_GPU_STEP_FLOOR_H_
#define RUBATO_BENCH_GPU_STEP_FLOOR_H_

#include <cstdint>

#include "bench/gpu/device_timing.h"
#include "common/model_spec.h"
#include "kernels/device_tensor.h"

namespace rubato::bench {

// What a layer's pass over a batch takes if only layers' outputs, their gradients, weights and weights' gradients
// are in memory.
struct LayerWork {
  Work forward, backward;
};
LayerWork WorkOf(const ModelSpec& spec, const LayerSpec& layer, int64_t batch, ElementType activations);

// Seconds that a step takes at least if layers run one after the other, each as long as FloorSeconds says, and read
// what they read from memory. A step whose activations stay in a cache (of 50 MB on an H100: resnet20's in part) may be
// quicker than that.
double StepFloor(const ModelSpec& spec, int64_t batch, ElementType activations, const DeviceRates& rates);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_GPU_STEP_FLOOR_H_
