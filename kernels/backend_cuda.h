#ifndef RUBATO_KERNELS_BACKEND_CUDA_H_
#define RUBATO_KERNELS_BACKEND_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace rubato {

// How activations, their gradients and the operands of matrix products are kept and rounded (docs/decisions/0016).
// Parameters and their gradients, sums, statistics of normalisation, softmax and losses are float32 or wider in all of
// these.
enum class MatrixPrecision {
  // Not at all.
  kFloat32,
  // To 10 bits after the point, by the tensor cores.
  kTf32,
  // To bfloat16: 7 bits after the point, the range of float32.
  kBf16,
  // To binary16: 10 bits after the point, up to 65504; what is larger becomes infinite, and what is under 6e-8 zero, so
  // small gradients need a scaled loss.
  kFp16,
};

struct CudaBackendOptions {
  // The GPU, counted from 0 as CUDA counts (CUDA_VISIBLE_DEVICES hides and reorders them).
  int device_index = 0;
  MatrixPrecision precision = MatrixPrecision::kFloat32;
  // Where AllocateHostForSending puts memory: so many zeroed bytes that start at a multiple of 64, or null when there
  // is no room for them. Empty: where all other host memory is.
  std::function<std::shared_ptr<void>(size_t bytes)> sending_memory = {};
  // Work that is replayed becomes CUDA graphs. Without, every kernel is launched by itself.
  bool graphs = true;
  // Convolutions are cuDNN's, if it can be loaded. Without, they are products of im2col matrices.
  bool cudnn = true;
  // Attention with 16-bit operands keeps its scores on the chip, if FusesAttention (workspace.h) says so. Without,
  // they go through memory.
  bool fused_attention = true;
  // im2col matrices, and scores of attention, are in memory about so many at a time.
  int64_t workspace_elements = int64_t{64} << 20;
};

// A GPU by NVIDIA. Its calls enqueue work and return; results have the same bits on every run on the same kind of GPU
// with the same libraries.
//
// FailedPrecondition, with what is missing: the program was built without a CUDA toolkit, there is no driver or one
// that is too old, there is no such GPU or it is too old, or cuBLAS cannot be loaded. ResourceExhausted: the GPU's
// memory is full. Internal: CUDA refused otherwise.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const CudaBackendOptions& options);

// Whether CreateCudaBackend has a chance: FailedPrecondition as there, without loading anything large.
absl::Status CheckCudaDevice(int device_index);

// GPUs that are seen, whether they can be used or not: 0 if there is none, no driver, or no toolkit in the program.
// FailedPrecondition: there is a driver, and it is too old to be asked. Internal: CUDA refused otherwise.
absl::StatusOr<int> CountCudaDevices();

}  // namespace rubato

#endif  // RUBATO_KERNELS_BACKEND_CUDA_H_
