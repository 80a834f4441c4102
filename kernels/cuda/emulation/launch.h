#ifndef RUBATO_KERNELS_CUDA_EMULATION_LAUNCH_H_
#define RUBATO_KERNELS_CUDA_EMULATION_LAUNCH_H_

// What a compiler that knows no CUDA needs to compile the backend's kernels, to run them on an emulated GPU. Included
// before everything else.

#include <cuda_runtime.h>
#include <math.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "kernels/cuda/emulation/gpu.h"
#include "kernels/cuda/emulation/threads.h"

// One block runs at a time.
#undef __shared__
#define __shared__ static
#undef __launch_bounds__
#define __launch_bounds__(threads)

#define threadIdx (::rubato::cuda::emulation::Here().thread)
#define blockIdx (::rubato::cuda::emulation::Here().block)
#define blockDim (::rubato::cuda::emulation::Here().threads)
#define gridDim (::rubato::cuda::emulation::Here().blocks)

inline void __syncthreads() { rubato::cuda::emulation::AwaitBlock(); }

// All lanes take part.
inline float __shfl_down_sync(unsigned, float value, unsigned lanes) {
  const auto given = rubato::cuda::emulation::AwaitWarp(std::bit_cast<uint32_t>(value));
  const unsigned from = static_cast<unsigned>(given.lane) + lanes;
  return from < 32 ? std::bit_cast<float>(static_cast<uint32_t>(given.values[from])) : value;
}
inline float __shfl_xor_sync(unsigned, float value, int bits) {
  const auto given = rubato::cuda::emulation::AwaitWarp(std::bit_cast<uint32_t>(value));
  return std::bit_cast<float>(static_cast<uint32_t>(given.values[given.lane ^ bits]));
}
inline double __shfl_xor_sync(unsigned, double value, int bits) {
  const auto given = rubato::cuda::emulation::AwaitWarp(std::bit_cast<uint64_t>(value));
  return std::bit_cast<double>(given.values[given.lane ^ bits]);
}
inline unsigned __ballot_sync(unsigned, bool predicate) {
  const auto given = rubato::cuda::emulation::AwaitWarp(predicate ? 1 : 0);
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane) ballot |= static_cast<unsigned>(given.values[lane]) << lane;
  return ballot;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }

namespace rubato::cuda::emulation {

// Internal: a GPU would refuse to launch so many blocks or threads, or the stream is not of this GPU.
absl::Status Launch(const char* name, dim3 blocks, dim3 threads, Stream stream, std::function<void()> thread);

template <typename... Parameters, typename... Arguments>
absl::Status Launch(const char* name, void (*kernel)(Parameters...), dim3 blocks, dim3 threads, Stream stream,
                    const Arguments&... arguments) {
  return Launch(name, blocks, threads, stream,
                [kernel, given = std::tuple<Parameters...>(arguments...)] { std::apply(kernel, given); });
}

}  // namespace rubato::cuda::emulation

#define RUBATO_CUDA_LAUNCH(kernel, blocks, threads, stream, ...) \
  RUBATO_RETURN_IF_ERROR(                                        \
      ::rubato::cuda::emulation::Launch(#kernel, kernel, dim3(blocks), dim3(threads), stream, __VA_ARGS__))

#endif  // RUBATO_KERNELS_CUDA_EMULATION_LAUNCH_H_
