#ifndef RUBATO_KERNELS_CUDA_PHILOX_H_
#define RUBATO_KERNELS_CUDA_PHILOX_H_

#include <cstdint>

// For .cu.cc files alone.
namespace rubato::cuda {

// PhiloxBlock of common/random.h.
__device__ inline uint4 Philox(uint64_t seed, uint64_t stream, uint64_t index) {
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  uint4 c = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(stream),
             static_cast<uint32_t>(stream >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c.x;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c.z;
    c = {static_cast<uint32_t>(p1 >> 32) ^ c.y ^ key0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c.w ^ key1, static_cast<uint32_t>(p0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_PHILOX_H_
