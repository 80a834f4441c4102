#ifndef RUBATO_KERNELS_OPTIMIZER_GRADIENT_CRC_H_
#define RUBATO_KERNELS_OPTIMIZER_GRADIENT_CRC_H_

#include <cstdint>

#include "kernels/optimizer/encoded_gradient.h"

namespace rubato {

// CRC-32 (zlib's polynomial) of a gradient's bytes, wherever a transport has cut them.
uint32_t GradientCrc(const EncodedGradient& gradient);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_GRADIENT_CRC_H_
