#ifndef RUBATO_WORKER_PS_CLIENT_TENSOR_STATISTICS_H_
#define RUBATO_WORKER_PS_CLIENT_TENSOR_STATISTICS_H_

#include "absl/types/span.h"
#include "kernels/optimizer/isa.h"
#include "proto/coordinator.pb.h"

namespace rubato::worker {

// Parts that the range of a tensor's elements is cut into.
inline constexpr int kStatisticsParts = 30;

// What TensorReport says of a tensor with these elements; without its name and kind. Elements that are all equal are in
// one part. Pure.
v1::TensorStatistics DescribeTensor(absl::Span<const float> elements);

// On a given instruction set, which this processor supports; for tests.
v1::TensorStatistics DescribeTensorOn(Isa isa, absl::Span<const float> elements);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_TENSOR_STATISTICS_H_
