#ifndef RUBATO_KERNELS_CUDA_ASYNC_COPY_H_
#define RUBATO_KERNELS_CUDA_ASYNC_COPY_H_

#include <cstdint>

// Copies from the GPU's memory to shared memory that a thread goes on beside (PTX ISA, "Asynchronous copy"). For
// .cu.cc files alone.
namespace rubato::cuda {

// kBytes, 4 or 16, between multiples of so many; zeros if they do not exist, and then `from` is not read.
template <int kBytes>
__device__ void CopyAsync(const void* from, bool exists, void* to);

// Until what the calling thread copies has arrived. What others copy: a barrier after this.
__device__ void AwaitCopies();

#ifdef __CUDACC__

template <>
__device__ inline void CopyAsync<4>(const void* from, bool exists, void* to) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                 "r"(exists ? 4 : 0)
               : "memory");
}
template <>
__device__ inline void CopyAsync<16>(const void* from, bool exists, void* to) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                 "r"(exists ? 16 : 0)
               : "memory");
}

__device__ inline void AwaitCopies() { asm volatile("cp.async.wait_all;" : : : "memory"); }

#else  // emulation/async_copy.cc

template <>
void CopyAsync<4>(const void* from, bool exists, void* to);
template <>
void CopyAsync<16>(const void* from, bool exists, void* to);

#endif

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_ASYNC_COPY_H_
