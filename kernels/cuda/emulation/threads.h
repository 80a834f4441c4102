#ifndef RUBATO_KERNELS_CUDA_EMULATION_THREADS_H_
#define RUBATO_KERNELS_CUDA_EMULATION_THREADS_H_

#include <vector_types.h>

#include <cstdint>
#include <functional>

// The threads of a kernel, run by one thread of the host: each until it waits for others. They switch nowhere else,
// so what one writes between two barriers and another reads shows or not by the order of the threads. That order
// changes from kernel to kernel, and so does whether a warp runs ahead of the others as far as the barriers let it. One
// kernel at a time.
namespace rubato::cuda::emulation {

// Where the running code is.
struct Place {
  uint3 thread, block;
  dim3 threads, blocks;
};

// Of the running thread.
const Place& Here();

// Runs body once for each thread of each block, block after block. Ends the program, with a message that names
// `kernel`, if threads wait for others that do not come: a barrier that not all threads of a block reach, or an
// operation of a warp that not all of its lanes reach.
void RunThreads(const char* kernel, dim3 blocks, dim3 threads, const std::function<void()>& body);

// Called by a running thread. Waits for all threads of its block.
void AwaitBlock();
// The lane's number, and what the others of its warp gave in the same call, by lane.
struct Exchange {
  int lane;
  const uint64_t* values;
};
Exchange AwaitWarp(uint64_t value);

}  // namespace rubato::cuda::emulation

#endif  // RUBATO_KERNELS_CUDA_EMULATION_THREADS_H_
