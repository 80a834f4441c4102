#include "kernels/cuda/emulation/launch.h"

#include "absl/strings/str_cat.h"

namespace rubato::cuda::emulation {

absl::Status Launch(const char* name, dim3 blocks, dim3 threads, Stream stream, std::function<void()> thread) {
  const uint64_t count = uint64_t{threads.x} * threads.y * threads.z;
  // The limits of every GPU since compute capability 3.0.
  if (blocks.x < 1 || blocks.y < 1 || blocks.z < 1 || blocks.x >= 1u << 31 || blocks.y >= 1u << 16 ||
      blocks.z >= 1u << 16 || count < 1 || count > 1024) {
    return absl::InternalError(absl::StrCat(name, ": ", blocks.x, " x ", blocks.y, " x ", blocks.z, " blocks of ",
                                            threads.x, " x ", threads.y, " x ", threads.z, " threads"));
  }
  const int error = Enqueue(stream, [=, thread = std::move(thread)] { RunThreads(name, blocks, threads, thread); });
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name, ": error ", error));
}

}  // namespace rubato::cuda::emulation
