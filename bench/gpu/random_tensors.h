#ifndef RUBATO_BENCH_GPU_RANDOM_TENSORS_H_
#define RUBATO_BENCH_GPU_RANDOM_TENSORS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace rubato::bench {

// Values of a standard normal distribution, rounded to `type` (float32 or the backend's ActivationType); they repeat
// after a million. With zeros or other round numbers a GPU draws less power and runs faster than in training.
// ResourceExhausted: the device has not enough memory, twice the tensor's if it has 16 bits.
absl::StatusOr<DeviceTensor> NormalTensor(Backend& backend, Shape shape, ElementType type, uint64_t seed);

// int32: every number in [0, bound) about as often as the others, and neighbours far from each other.
absl::StatusOr<DeviceTensor> IndexTensor(Backend& backend, Shape shape, int64_t bound);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_GPU_RANDOM_TENSORS_H_
