#ifndef RUBATO_KERNELS_CUDA_CUDA_BACKEND_H_
#define RUBATO_KERNELS_CUDA_CUDA_BACKEND_H_

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device_context.h"
#include "kernels/cuda/host_memory.h"
#include "kernels/cuda/staging.h"

namespace rubato::cuda {

// Backend on a GPU: its memory, its copies and their order.
class CudaBackend : public Backend {
 public:
  // As CreateCudaBackend.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Create(const CudaBackendOptions& options);
  ~CudaBackend() override;

  std::string Name() const override;
  absl::Status Reserve(int64_t tensor_bytes, int64_t workspace_bytes) override;
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t bytes) override;
  absl::StatusOr<std::shared_ptr<void>> AllocateHostForSending(int64_t bytes) override;
  absl::StatusOr<DeviceMemory> Memory() const override;
  WorkspaceRules Workspace() const override { return operations_->workspace(); }
  float* HostPointer(const DeviceTensor&) const override { return nullptr; }
  absl::StatusOr<std::unique_ptr<Event>> Record() override;
  absl::Status Synchronize() override;
  std::unique_ptr<GraphReplay> NewGraphReplay() override;

 private:
  CudaBackend(const CudaBackendOptions& options, Device device) : options_(options), context_(std::move(device)) {}
  absl::Status Start();

  absl::StatusOr<DeviceTensor> DoAllocate(Shape shape, ElementType type, int64_t bytes) override;
  absl::Status DoCopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) override;
  absl::Status DoCopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) override;
  absl::Status DoCopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) override;
  Operations* operations() override { return operations_.get(); }

  // Lets the peer's GPU write this GPU's memory itself, if it can.
  absl::Status OpenTo(const CudaBackend& peer);

  const CudaBackendOptions options_;
  HostMemory host_memory_;
  // GPUs that have been looked at by OpenTo.
  std::set<int> opened_to_;
  DeviceContext context_;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<CudaOperations> operations_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_CUDA_BACKEND_H_
