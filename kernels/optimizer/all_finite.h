#ifndef RUBATO_KERNELS_OPTIMIZER_ALL_FINITE_H_
#define RUBATO_KERNELS_OPTIMIZER_ALL_FINITE_H_

#include <cstdint>

namespace rubato {

// Whether none of the n float32 at `data`, of any alignment, is infinite or not a number. True for n = 0.
bool AllFinite(const void* data, int64_t n);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_ALL_FINITE_H_
