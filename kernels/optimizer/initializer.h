#ifndef RUBATO_KERNELS_OPTIMIZER_INITIALIZER_H_
#define RUBATO_KERNELS_OPTIMIZER_INITIALIZER_H_

#include <cstdint>

#include "common/model_spec.h"

namespace rubato {

// Writes the initial values of elements [offset, offset + n) of a tensor to `out`. An element depends on the seed, the
// tensor's index in the model and its own index in the tensor alone, so chunks of any size hold the same bits. Normal
// values come from pairs of draws (Box and Muller 1958) of one Philox block each. Safe from several threads.
void InitializeSlice(const TensorSpec& tensor, int tensor_index, uint64_t seed, int64_t offset, int64_t n, float* out);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_INITIALIZER_H_
