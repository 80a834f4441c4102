#ifndef RUBATO_KERNELS_CUDA_EMULATION_GPU_H_
#define RUBATO_KERNELS_CUDA_EMULATION_GPU_H_

#include <functional>

#include "kernels/cuda/stream.h"

// Two emulated GPUs, behind the CUDA runtime's own functions (cuda_runtime_api.h), as far as the backend
// calls them. What is wrong with a program shows here where a real GPU may hide it:
//
//  - Work is done late: when it is waited for, and not before, but for some of any stream now and then. What two
//  streams
//    are not told to do in order is done in any.
//  - Memory begins with NaN. A copy must lie inside memory of a GPU, and of the host inside pages that are locked.
//  - Work goes to a stream of the GPU that the calling thread uses.
//
// No timing, and no more than one thing at a time. Thread-safe.
namespace rubato::cuda::emulation {

// Enqueues work of the device. A cudaError_t.
int Enqueue(Stream stream, std::function<void()> work);

}  // namespace rubato::cuda::emulation

#endif  // RUBATO_KERNELS_CUDA_EMULATION_GPU_H_
