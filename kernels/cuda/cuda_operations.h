#ifndef RUBATO_KERNELS_CUDA_CUDA_OPERATIONS_H_
#define RUBATO_KERNELS_CUDA_CUDA_OPERATIONS_H_

#include <memory>
#include <string>

#include "kernels/backend_cuda.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/cublas_lt.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/device_context.h"
#include "kernels/cuda/format.h"
#include "kernels/operations.h"

namespace rubato::cuda {

// Operations on a GPU. Each orders itself after what it depends on (Begin), takes scratch memory from its Work, and
// launches kernels and products. Used by one thread at a time.
class CudaOperations : public Operations {
 public:
  // With the options' precision, workspace and libraries. The context outlives it. FailedPrecondition: cuBLAS cannot be
  // loaded. Internal: CUDA refuses otherwise.
  static absl::StatusOr<std::unique_ptr<CudaOperations>> Create(const CudaBackendOptions& options,
                                                                DeviceContext* context);

  const WorkspaceRules& workspace() const { return workspace_; }
  // "cuDNN 9.1.0", for messages; empty without.
  std::string Libraries() const;

  RUBATO_DECLARE_OPERATIONS(override)

 private:
  CudaOperations(const CudaBackendOptions& options, DeviceContext* context);

  absl::StatusOr<Work> Begin(DeviceContext::Tensors reads, DeviceContext::Tensors writes) {
    return context_->Begin(reads, writes);
  }

  // ---- products ----

  // What a convolution may take beside what im2col would.
  static constexpr int64_t kCudnnBytes = 32 << 20;
  // If it can, with no more memory than is planned for.
  absl::StatusOr<bool> UsesCudnn(const Conv2dGeometry& geometry, int64_t images);
  absl::StatusOr<bool> CudnnBackwardWeight(Work& work, const Conv2dGeometry& geometry, const DeviceTensor& x,
                                           const DeviceTensor& dy, bool accumulate, const DeviceTensor& dweight);

  // dweight and dbias of LinearBackward in one kernel; false: there is none, and nothing has been done.
  absl::StatusOr<bool> MultiplySumRows(const DeviceTensor& x, const DeviceTensor& dy, bool accumulate,
                                       const DeviceTensor& dweight, const DeviceTensor& dbias);
  // Uninitialised memory for n elements of a product's operand.
  absl::StatusOr<void*> NewOperand(Work& work, int64_t n);
  template <typename Byte>
  Byte* OperandAt(Byte* operand, int64_t element) const {
    return operand + element * ElementBytes(type_);
  }

  // ---- attention: pairs of example and head, as in attention.h ----

  // [pairs, sequence, head_width], as operands.
  struct HeadOperands {
    const void *q = nullptr, *k = nullptr, *v = nullptr;
  };
  struct HeadGradients;
  absl::StatusOr<HeadOperands> GatherQkv(Work& work, const AttentionGeometry& geometry, int64_t batch, const void* qkv);
  absl::Status AttentionRowsBackward(Work& work, const AttentionGeometry& geometry, const ScoreBlock& block,
                                     const HeadOperands& heads, const HeadGradients& gradients);

  DeviceContext* const context_;
  // Of activations and of products' operands.
  const ElementType type_;
  const WorkspaceRules workspace_;
  std::unique_ptr<Cublas> cublas_;
  std::unique_ptr<CublasLt> cublas_lt_;
  // Null if there is none, or none is wanted.
  std::unique_ptr<Cudnn> cudnn_;
};

// The tensor's elements, of float32 tensors and of activations.
inline const float* In(const DeviceTensor& tensor) { return tensor.data<const float>(); }
inline float* Out(const DeviceTensor& tensor) { return tensor.data<float>(); }
inline const char* InBytes(const DeviceTensor& tensor) { return tensor.data<const char>(); }
inline char* OutBytes(const DeviceTensor& tensor) { return tensor.data<char>(); }

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_CUDA_OPERATIONS_H_
