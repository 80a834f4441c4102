#ifndef RUBATO_KERNELS_CUDA_EMULATION_ROUND_TO_TF32_H_
#define RUBATO_KERNELS_CUDA_EMULATION_ROUND_TO_TF32_H_

#include <bit>
#include <cstdint>

namespace rubato::cuda::emulation {

// To 10 bits after the point, to nearest even.
inline float RoundToTf32(float element) {
  const auto bits = std::bit_cast<uint32_t>(element);
  if ((bits & 0x7f800000u) == 0x7f800000u) return element;
  return std::bit_cast<float>((bits + 0xfffu + ((bits >> 13) & 1)) & ~0x1fffu);
}

}  // namespace rubato::cuda::emulation

#endif  // RUBATO_KERNELS_CUDA_EMULATION_ROUND_TO_TF32_H_
