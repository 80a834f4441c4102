#ifndef RUBATO_KERNELS_CUDA_LAUNCH_H_
#define RUBATO_KERNELS_CUDA_LAUNCH_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "common/status.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/stream.h"

// What the files with kernels share. For .cu.cc files alone.
namespace rubato::cuda {

// Threads in a block, everywhere. The reductions below are trees over so many.
inline constexpr int kThreads = 256;

// Enough blocks to fill any GPU; a kernel strides over the rest, so its result does not depend on the GPU.
inline unsigned Blocks(int64_t elements) {
  return static_cast<unsigned>(std::clamp<int64_t>((elements + kThreads - 1) / kThreads, 1, 8192));
}

// The elements of a grid-stride loop: for (int64_t i = First(); i < n; i += Stride()).
__device__ inline int64_t First() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t Stride() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

// Sums over a warp, and over a block of kThreads threads, for all of them, always added in the same order. `shared` has
// kWarps elements and may be used again afterwards.
inline constexpr int kWarpThreads = 32;
inline constexpr int kWarps = kThreads / kWarpThreads;

__device__ inline double WarpSum(double value) {
#pragma unroll
  for (int lanes = kWarpThreads / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

__device__ inline double BlockSum(double value, double* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  value = WarpSum(value);
  if (thread % kWarpThreads == 0) shared[thread / kWarpThreads] = value;
  __syncthreads();
  double sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += shared[warp];
  __syncthreads();
  return sum;
}

}  // namespace rubato::cuda

// Enqueues kernel<<<blocks, threads, 0, stream>>>(...) and returns an error when that is refused. Emulated GPUs
// (emulation/launch.h) have one of their own.
#ifndef RUBATO_CUDA_LAUNCH
#define RUBATO_CUDA_LAUNCH(kernel, blocks, threads, stream, ...)   \
  do {                                                             \
    kernel<<<blocks, threads, 0, stream>>>(__VA_ARGS__);           \
    RUBATO_RETURN_IF_ERROR(::rubato::cuda::LaunchStatus(#kernel)); \
  } while (false)
#endif

#endif  // RUBATO_KERNELS_CUDA_LAUNCH_H_
