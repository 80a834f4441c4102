#include "bench/gpu/random_tensors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bench/bench_timing.h"
#include "common/status.h"

namespace rubato::bench {

absl::StatusOr<DeviceTensor> NormalTensor(Backend& backend, Shape shape, ElementType type, uint64_t seed) {
  RUBATO_ASSIGN_OR_RETURN(const DeviceTensor floats, backend.Allocate(shape));
  const std::vector<float> values = NormalValues(std::min(floats.elements(), int64_t{1} << 20), seed);
  for (int64_t done = 0; done < floats.elements();) {
    const int64_t count = std::min(floats.elements() - done, static_cast<int64_t>(values.size()));
    RUBATO_RETURN_IF_ERROR(backend.CopyToDevice(floats, done, count, values.data()));
    done += count;
  }
  RUBATO_RETURN_IF_ERROR(backend.Synchronize());
  if (type == ElementType::kFloat32) return floats;
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor tensor, backend.Allocate(std::move(shape), type));
  RUBATO_RETURN_IF_ERROR(backend.Copy(floats, tensor));
  return tensor;
}

absl::StatusOr<DeviceTensor> IndexTensor(Backend& backend, Shape shape, int64_t bound) {
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor tensor, backend.Allocate(std::move(shape), ElementType::kInt32));
  std::vector<int32_t> indices(tensor.elements());
  // 7919 is prime, so that all numbers come before one comes again.
  for (int64_t i = 0; i < tensor.elements(); ++i) indices[i] = static_cast<int32_t>(i * 7919 % bound);
  RUBATO_RETURN_IF_ERROR(backend.CopyToDevice(tensor, 0, tensor.elements(), indices.data()));
  RUBATO_RETURN_IF_ERROR(backend.Synchronize());
  return tensor;
}

}  // namespace rubato::bench
