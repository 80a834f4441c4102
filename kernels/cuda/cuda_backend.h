#ifndef RUBATO_KERNELS_CUDA_CUDA_BACKEND_H_
#define RUBATO_KERNELS_CUDA_CUDA_BACKEND_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/cublas_lt.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/format.h"
#include "kernels/cuda/host_memory.h"
#include "kernels/cuda/memory_pool.h"
#include "kernels/cuda/staging.h"
#include "kernels/cuda/streams.h"
#include "kernels/cuda/work.h"

namespace rubato::cuda {

// Backend on a card. Every operation checks its arguments, orders itself after what it depends on (Begin), takes
// scratch memory from its Work, and launches kernels and products.
class CudaBackend : public Backend {
 public:
  // As CreateCudaBackend.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Create(const CudaBackendOptions& options);
  ~CudaBackend() override;

  std::string Name() const override;

  absl::StatusOr<DeviceTensor> Allocate(Shape shape, ElementType type) override;
  absl::Status Reserve(int64_t tensor_bytes, int64_t workspace_bytes) override;
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t bytes) override;
  absl::StatusOr<std::shared_ptr<void>> AllocateHostForSending(int64_t bytes) override;
  absl::StatusOr<DeviceMemory> Memory() const override;
  WorkspaceRules Workspace() const override { return workspace_; }
  absl::Status CopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) override;
  absl::Status CopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) override;
  absl::Status CopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) override;
  float* HostPointer(const DeviceTensor&) const override { return nullptr; }
  absl::StatusOr<std::unique_ptr<Event>> Record() override;
  absl::Status Synchronize() override;
  std::unique_ptr<RepeatedWork> NewRepeatedWork() override;

  absl::Status Fill(float value, const DeviceTensor& y) override;
  absl::Status Copy(const DeviceTensor& x, const DeviceTensor& y) override;
  absl::Status Add(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y) override;
  absl::Status Axpy(float alpha, const DeviceTensor& x, const DeviceTensor& y) override;
  absl::Status Scale(float factor, const DeviceTensor& y) override;
  absl::Status SumOfSquares(const DeviceTensor& x, bool accumulate, const DeviceTensor& sum) override;
  absl::Status ScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y) override;
  absl::Status Gemm(bool transpose_a, bool transpose_b, float alpha, const DeviceTensor& a, const DeviceTensor& b,
                    float beta, const DeviceTensor& c) override;
  absl::Status Linear(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& bias,
                      const DeviceTensor& y) override;
  absl::Status LinearBackward(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& dy,
                              bool accumulate, const DeviceTensor& dx, const DeviceTensor& dweight,
                              const DeviceTensor& dbias) override;
  absl::Status AddBias(const DeviceTensor& bias, const DeviceTensor& y) override;
  absl::Status BiasGradient(const DeviceTensor& dy, bool accumulate, const DeviceTensor& dbias) override;

  absl::Status Conv2d(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& weight,
                      const DeviceTensor& y) override;
  absl::Status Conv2dBackwardData(const Conv2dGeometry& geometry, const DeviceTensor& dy, const DeviceTensor& weight,
                                  const DeviceTensor& dx) override;
  absl::Status Conv2dBackwardWeight(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& dy,
                                    bool accumulate, const DeviceTensor& dweight) override;
  absl::Status MaxPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                         const DeviceTensor& argmax) override;
  absl::Status MaxPool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy, const DeviceTensor& argmax,
                                 const DeviceTensor& dx) override;
  absl::Status AveragePool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y) override;
  absl::Status AveragePool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,
                                     const DeviceTensor& dx) override;

  absl::Status Activate(Activation activation, const DeviceTensor& x, const DeviceTensor& y) override;
  absl::Status ActivateBackward(Activation activation, const DeviceTensor& x, const DeviceTensor& y,
                                const DeviceTensor& dy, const DeviceTensor& dx) override;
  absl::Status Dropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y) override;
  absl::Status LayerNorm(float epsilon, const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& bias,
                         const DeviceTensor& y, const DeviceTensor& mean,
                         const DeviceTensor& inverse_deviation) override;
  absl::Status LayerNormBackward(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& mean,
                                 const DeviceTensor& inverse_deviation, const DeviceTensor& dy, bool accumulate,
                                 bool add_to_dx, const DeviceTensor& dx, const DeviceTensor& dgain,
                                 const DeviceTensor& dbias) override;

  absl::Status GroupNorm(int64_t groups, float epsilon, const DeviceTensor& x, const DeviceTensor& gain,
                         const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,
                         const DeviceTensor& inverse_deviation) override;
  absl::Status GroupNormBackward(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain,
                                 const DeviceTensor& mean, const DeviceTensor& inverse_deviation,
                                 const DeviceTensor& dy, bool accumulate, const DeviceTensor& dx,
                                 const DeviceTensor& dgain, const DeviceTensor& dbias) override;

  absl::Status Embed(const DeviceTensor& table, const DeviceTensor& indices, const DeviceTensor& y) override;
  absl::Status EmbedBackward(const DeviceTensor& indices, const DeviceTensor& dy, bool accumulate,
                             const DeviceTensor& dtable) override;
  absl::Status CausalAttention(const AttentionGeometry& geometry, const DeviceTensor& qkv, const DeviceTensor& y,
                               const DeviceTensor& log_sum_exp) override;
  absl::Status CausalAttentionBackward(const AttentionGeometry& geometry, const DeviceTensor& qkv,
                                       const DeviceTensor& y, const DeviceTensor& log_sum_exp, const DeviceTensor& dy,
                                       const DeviceTensor& dqkv) override;

  absl::Status SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes, float gradient_scale,
                                   const DeviceTensor& dlogits, const DeviceTensor& sums) override;
  absl::Status MeanSquaredError(const DeviceTensor& outputs, const DeviceTensor& targets, float gradient_scale,
                                const DeviceTensor& doutputs, const DeviceTensor& sums) override;

  absl::Status ApplyUpdate(const UpdateRule& rule, const DeviceTensor& gradient, const DeviceTensor& weights,
                           const DeviceTensor& first_slot, const DeviceTensor& second_slot) override;

  absl::Status Encode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                      const DeviceTensor& message) override;

 private:
  using Tensors = std::initializer_list<const DeviceTensor*>;

  CudaBackend(const CudaBackendOptions& options, Device device);
  absl::Status Start();

  // Lets the peer's card write this card's memory itself, where it can.
  absl::Status OpenTo(const CudaBackend& peer);
  // The calling thread's calls go to this card.
  absl::Status UseDevice() const;
  // Begins an operation that uses these tensors; empty ones are left out.
  absl::StatusOr<Work> Begin(Tensors reads, Tensors writes);

  // ---- products ----

  // What a convolution may take beside what unfolding its images would.
  static constexpr int64_t kCudnnBytes = 32 << 20;
  // Where it can, with no more memory than is planned for.
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

  const CudaBackendOptions options_;
  const Device device_;
  // Of activations and of products' operands.
  const ElementType type_;
  const WorkspaceRules workspace_;
  HostMemory host_memory_;
  // Cards that have been looked at by OpenTo.
  std::set<int> opened_to_;
  // In this order, because the streams' end waits for all work on the memory.
  std::unique_ptr<MemoryPool> pool_;
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<ScratchMemory> scratch_;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<Cublas> cublas_;
  std::unique_ptr<CublasLt> cublas_lt_;
  // Null where there is none, or none is wanted.
  std::unique_ptr<Cudnn> cudnn_;
};

// The tensor's elements, of float32 tensors and of activations.
inline const float* In(const DeviceTensor& tensor) { return tensor.data<const float>(); }
inline float* Out(const DeviceTensor& tensor) { return tensor.data<float>(); }
inline const char* InBytes(const DeviceTensor& tensor) { return tensor.data<const char>(); }
inline char* OutBytes(const DeviceTensor& tensor) { return tensor.data<char>(); }

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_CUDA_BACKEND_H_
